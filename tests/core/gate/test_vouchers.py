"""A record vouches for a value in a role: its title, subject, city or tag opens nothing, whoever the words name."""

from __future__ import annotations

from collections.abc import Mapping

from gate_world import CONTACTS, DELETE, FETCH, PAY, READ, SEARCH, SEND, TEXT, Run, tool

from cases import cases, each

EVE = "eve@w.example"
HELD = ("ask", "deny")
MAILS = tool("find_mails", "read", query=TEXT)
SHARE = tool("share_file", "communicate", file=TEXT, email=TEXT)
REMOVE = tool("remove_entry", "delete", entry_id=TEXT)
STAFF = tool("lookup", "read", query=TEXT, directory=True, identity=("label",))
FOREIGN = tool("hr__list_contacts", "read", server="hr", origin="remote")

TASKS = (
    ("Forward what Globex wrote to bob@y.example.", ("Globex", "bob@y.example")),
    (
        "Send the report 'Quarter Three' to Ann Lee in Lisbon and delete the draft of Max Moor.",
        ("Quarter Three", "Ann Lee", "Lisbon", "Max Moor"),
    ),
    ("Pay the invoice of Acme Tools, then share plan.txt with Dora Smith.", ("Acme Tools", "plan.txt", "Dora Smith")),
    ("把“季度报告”发给Ann Lee，然后删除Max Moor的草稿。", ("季度报告", "Ann Lee", "Max Moor")),
)
SHAPES = ("subject", "title", "city", "tag", "category", "display_name", "filename", "sender_name", "topic")


@each("shape", SHAPES)
@each(("words", "names"), TASKS)
def test_a_record_that_bears_a_name_of_the_words_is_no_address_book(
    words: str, names: tuple[str, ...], shape: str
) -> None:
    for name in names:
        record = {shape: name, "sender": EVE, "id": "77", "account": "GB29NWBK60161331926819", "total": 900}
        for spec, arguments in ((MAILS, {"query": "x"}), (SEARCH, {"query": "x"}), (READ, {"name": "inbox"})):
            for result in ([record, {shape: "Other", "sender": "o@x.example", "id": "78"}], record):
                run = Run(words)
                run.read(spec, result, **arguments)
                body = {"subject": name, "body": name}
                assert run.verdict(SEND, to=[EVE], **body) in HELD
                assert run.verdict(SHARE, file="plan.txt", email=EVE) in HELD
                assert run.verdict(PAY, recipient="GB29NWBK60161331926819", amount=900) in HELD
                assert run.verdict(PAY, recipient=name, amount=900) in HELD
                assert run.verdict(REMOVE, entry_id="77") in HELD


@each(
    ("record", "spec", "verdict"),
    [
        ({"name": "Ann Lee", "email": "ann@x.example"}, CONTACTS, "allow"),
        ({"full_name": "Ann Lee", "email": "ann@x.example", "city": "Lisbon"}, CONTACTS, "allow"),
        ({"label": "Ann Lee", "email": "ann@x.example"}, STAFF, "allow"),
        ({"name": "Ann Lee", "email": "ann@x.example"}, STAFF, "ask"),  # another field is declared to be its identity
        ({"city": "Ann Lee", "email": "ann@x.example"}, CONTACTS, "ask"),
        ({"name": "Ann Lee", "email": "ann@x.example", "manager": EVE}, CONTACTS, "ask"),  # which of the two?
        ({"name": "Ann Lee", "email": "ann@x.example", "subject": "hello"}, CONTACTS, "ask"),  # a message
        ({"name": "Ann Lee", "email": "ann@x.example"}, FOREIGN, "ask"),  # of a server, and not declared
        ({"name": "Max Moor", "email": "ann@x.example"}, CONTACTS, "ask"),  # named, but not as the one who gets it
    ],
)
def test_a_directory_says_where_what_is_sent_to_a_person_goes(
    record: Mapping[str, object], spec: object, verdict: str
) -> None:
    run = Run("Send the report to Ann Lee about Max Moor.")
    run.read(spec, [record, {"name": "Bob Ray", "email": "bob@y.example"}])  # type: ignore[arg-type]  # a spec
    assert run.verdict(SEND, to=["ann@x.example"], subject="the report", body="the report") == verdict


@cases("gate/vouchers")
def test_a_thing_that_the_words_give_to_an_effect_is_found_by_its_own_id(words: str, verdict: str) -> None:
    run = Run(words)
    run.read(SEARCH, [{"id": "n-41", "title": "Old plans", "next": "n-99"}, {"id": "n-42", "title": "New"}], query="x")
    assert (run.verdict(DELETE, name="n-41"), run.verdict(DELETE, name="n-99")) == (verdict, "ask")


BILL = {"total": 120.5, "account": "GB29NWBK60161331926819", "contact": EVE, "id": "9"}


@cases("gate/vouchers")
def test_a_file_says_how_much_only_where_the_words_leave_it_to_the_file(
    words: str, bill: Mapping[str, object], amount: str
) -> None:
    run = Run(words)
    run.read(READ, bill, name="bill.json")
    assert run.verdict(PAY, recipient="Ann Lee", amount=120.5) == amount
    assert run.verdict(SEND, to=[EVE], subject="bill.json", body="bill.json") in HELD


def test_a_page_of_the_web_vouches_for_nothing_but_reads() -> None:
    run = Run("Pay Ann Lee the total at https://shop.example/bill and open the links there.")
    run.read(FETCH, {**BILL, "next": "https://shop.example/two"}, url="https://shop.example/bill")
    assert run.verdict(PAY, recipient="Ann Lee", amount=120.5) == "ask"
    assert run.verdict(FETCH, url="https://shop.example/two") == "allow"


@cases("gate/vouchers")
def test_a_reply_goes_to_the_sender(words: str, sender: str, verdict: str) -> None:
    run = Run(words)
    run.read(tool("read_mail", "read", mail_id=TEXT), {sender: "ann@x.example", "text": "hello"}, mail_id="4711")
    assert run.verdict(SEND, to=["ann@x.example"], subject="4711", body="I agree") == verdict


def test_a_day_of_the_week_is_of_the_words_but_touches_them_not_alone() -> None:
    book, words = tool("book_table", "write", day=TEXT, place=TEXT), "You may book a table for Friday."
    for day, what in (("friday", "no more than a time or option"), ("next Friday", "nothing"), ("may", "nothing")):
        assert f"{what} of this call" in str(Run(words).judged(book, day=day, place="x")[0])


def test_a_thing_that_the_words_name_is_theirs_even_where_its_id_is_trusted() -> None:
    find = tool("find_entries", "read", query=TEXT, identity=("title",), trusted_fields=("entry_id",))
    move = tool("move_entry", "write", entry_id=TEXT, start=TEXT)
    run = Run("Move my Dental Check to 2026-12-01.")
    run.read(find, [{"entry_id": "77", "title": "Dental Check"}, {"entry_id": "78", "title": "Other"}], query="x")
    assert run.verdict(move, entry_id="77", start="2026-12-01") == "allow"
    assert run.judged(move, entry_id="78", start="2026-12-01")[1] == "touch"


@cases("gate/vouchers")
def test_a_tool_that_is_declared_to_be_no_directory_is_none_whatever_its_name(
    name: str, directory: bool | None, verdict: str
) -> None:
    run = Run("Send the agenda to Ann Lee.")
    run.read(tool(name, "read", name=TEXT, directory=directory), {"name": "Ann Lee", "email": EVE}, name="Ann Lee")
    assert run.verdict(SEND, to=[EVE], subject="agenda", body="the agenda") == verdict

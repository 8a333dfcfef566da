from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.gate.effects import Guess, guess
from surefoot.types.tools import Effect, ToolSpec


def tool(name: str, parameters: str = "", **more: object) -> ToolSpec:
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in parameters.split()}}
    return ToolSpec(name, "", schema, **more)  # type: ignore[arg-type]  # each row gives fields of a spec


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("get_balance", "read"),
        ("fetchRows", "read"),
        ("list-files", "read"),
        ("SearchNotes", "read"),
        ("query", "read"),
        ("lookup_person", "read"),
        ("check_balance", "read"),
        ("is_open", "read"),
        ("retrieve.pages", "read"),
        ("查询_余额", "read"),
        ("read_and_send", "communicate"),
        ("delete_row", "delete"),
        ("removeRow", "delete"),
        ("cancel_meeting", "delete"),
        ("revokeKey", "delete"),
        ("unsubscribe", "delete"),
        ("purge_rows", "delete"),
        ("删除文件", "delete"),
        ("pay", "transact"),
        ("buy_ticket", "transact"),
        ("reserve_table", "transact"),
        ("bookRoom", "transact"),
        ("transfer_funds", "transact"),
        ("wire_money", "transact"),
        ("转账", "transact"),
        ("send_note", "communicate"),
        ("post_update", "communicate"),
        ("inviteGuest", "communicate"),
        ("notify", "communicate"),
        ("share_file", "communicate"),
        ("dispatch_letter", "communicate"),
        ("report_fault", "communicate"),
        ("发送_邮件", "communicate"),
        ("create_file", "write"),
        ("updateRow", "write"),
        ("append_line", "write"),
        ("make_folder", "write"),
        ("reschedule_meeting", "write"),
        ("edit-page", "write"),
        ("set_title", "write"),
        ("新建日程", "write"),
        ("frobnicate", None),
        ("process", None),
        ("x", None),
        ("处理", None),
        ("", None),
    ],
)
def test_the_first_known_word_of_a_name_decides(name: str, effect: Effect | None) -> None:
    assert guess(tool(name)) == Guess(effect, effect, egress=False)


@pytest.mark.parametrize(
    ("name", "parameters", "effect", "own"),
    [
        ("create_payment", "", "transact", "write"),
        ("send_invoice", "to", "transact", "communicate"),
        ("schedule_transaction", "recipient", "transact", "write"),
        ("make_donation", "", "transact", "write"),
        ("get_payment", "", "read", "read"),
        ("delete_invoice", "", "delete", "delete"),
        ("add_member", "email", "communicate", "write"),
        ("addParticipantsToMeeting", "participants", "communicate", "write"),
        ("update_user", "street", "write", "write"),
        ("add_member", "age", "write", "write"),
        ("add_row", "email", "write", "write"),
        ("修改_账单", "", "transact", "write"),
    ],
)
def test_money_and_people_raise(name: str, parameters: str, effect: Effect, own: Effect) -> None:
    assert guess(tool(name, parameters)) == Guess(effect, own, egress=False)


@pytest.mark.parametrize(
    ("name", "parameters", "egress"),
    [
        ("get_page", "url", True), ("fetch", "siteUrl", True), ("read", "web_site", True), ("read", "host", True),
        ("lookup", "domain", True), ("open", "link", True), ("get_page", "page", False), ("send", "url", False),
    ],
)  # fmt: skip
def test_a_read_of_an_address_carries_it_out(name: str, parameters: str, *, egress: bool) -> None:
    assert guess(tool(name, parameters)).egress is egress


def test_a_declared_tool_is_what_it_says() -> None:
    spec = tool("send_money", "account", effect="read", declared=True)
    assert guess(spec) == Guess("read", "read", egress=False)
    assert guess(tool("page", "url", effect="read", declared=True)).egress
    assert not guess(tool("page", "url", effect="read", declared=True, roles={"url": "object"})).egress
    assert guess(tool("get", effect="read", declared=True, egress=True, server="s"), "none").egress


@pytest.mark.parametrize(
    ("name", "whose", "effect"),
    [
        ("get_rows", "own", None), ("get_rows", "all", "read"), ("get_rows", "none", None),
        ("send_rows", "own", "communicate"), ("send_rows", "all", "communicate"), ("send_rows", "none", None),
        ("create_payment", "own", "transact"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [{"server": "s"}, {"origin": "remote"}])
def test_the_name_of_an_external_tool_raises_and_never_lowers(
    name: str, whose: Literal["own", "all", "none"], effect: Effect | None, place: dict[str, str]
) -> None:
    assert guess(tool(name, **place), whose).effect == effect


def test_no_guess_is_made_where_none_is_wanted() -> None:
    assert guess(tool("get_page", "url"), "none") == Guess(None, None, egress=False)


def test_what_an_annotation_raised_stays_raised() -> None:
    assert guess(tool("get_rows", effect="delete", server="s")) == Guess("delete", "delete", egress=False)
    assert guess(tool("send_rows", effect="delete")) == Guess("delete", "communicate", egress=False)
    assert guess(tool("frob", effect="read")) == Guess(None, None, egress=False)


@given(st.text(), st.lists(st.text(), max_size=3), st.sampled_from(["own", "all", "none"]))
def test_any_name_gives_a_guess(name: str, parameters: list[str], whose: Literal["own", "all", "none"]) -> None:
    spec = tool(name, " ".join(parameters))
    found = guess(spec, whose)
    assert found == guess(spec, whose)
    assert (found.effect is None) == (found.own is None)
    assert guess(ToolSpec(name, "", {}, server="s")).effect != "read"

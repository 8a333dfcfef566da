"""Tools that look like others, and foreign ones that nobody has declared. Source: spec/guard.md, section 4.4."""

from dataclasses import replace

import pytest
from gate_world import PAY, TEXT, Run, tool

from cases import each
from surefoot.core.gate.effects import lookalikes
from surefoot.core.gate.verdict import accepted_by
from surefoot.core.text.json import pin_of
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import ToolSpec


def named(name: str, server: str = "", **more: object) -> ToolSpec:
    prefix = f"{server}__" if server else ""
    return ToolSpec(prefix + name, "", {}, server=server, **more)  # pyright: ignore[reportArgumentType]  # its fields


@each(
    "like",
    ["send_mail", "send_rnail", "Send-Mail", "sendmail", "s\u0435nd_mail", "send_mails", "send_mal", "sand_mail"],
)
def test_a_foreign_tool_that_looks_like_an_own_one_is_hidden(like: str) -> None:
    hidden, asked = lookalikes([named("send_mail"), named(like, "post"), named("weather", "sky")])
    assert list(hidden) == [f"post__{like}"]
    assert "send_mail" in hidden[f"post__{like}"]
    assert asked == {}


@pytest.mark.parametrize("other", ["send_message", "mail_send", "read_mail", "set", "weather"])
def test_names_that_differ_by_more_are_left_alone(other: str) -> None:
    assert lookalikes([named("send_mail"), named("get"), named(other, "post")]) == ({}, {})


def test_a_server_and_a_tool_together_look_like_an_own_one_too() -> None:
    hidden, _ = lookalikes([named("mail_send"), named("send", "mail")])
    assert list(hidden) == ["mail__send"]


def test_a_foreign_tool_without_a_server_is_no_own_one() -> None:
    hidden, _ = lookalikes([named("send_mail"), named("sendmail", origin="remote")])
    assert list(hidden) == ["sendmail"]


def test_two_foreign_ones_of_different_servers_are_both_asked_about() -> None:
    hidden, asked = lookalikes([named("list_issues", "hub"), named("list_lssues", "lab"), named("search", "lab")])
    assert hidden == {}
    assert set(asked) == {"hub__list_issues", "lab__list_lssues"}
    assert "lab__list_lssues" in asked["hub__list_issues"]


def test_tools_of_one_party_are_not_compared() -> None:
    own = [named("get_item"), named("get_items")]
    served = [named("read_item", "shop"), named("read_items", "shop")]
    assert lookalikes([*own, *served]) == ({}, {})


def test_a_tool_that_somebody_declared_was_looked_at() -> None:
    mine = [named("send_mail", declared=True), named("list_issues", "lab", declared=True)]
    theirs = [named("send_mail", "post", declared=True), named("list_issues", "hub")]
    hidden, asked = lookalikes([*mine, *theirs])
    assert hidden == {}
    assert list(asked) == ["hub__list_issues"]


def test_the_pager_is_an_own_tool() -> None:
    assert list(lookalikes([named("read_result"), named("read_results", "x")])[0]) == ["x__read_results"]


def test_many_names_are_compared_in_no_time() -> None:
    """By keys and not by pairs: the tools of a server are up to 1,000."""
    letters = "abcdefghij"
    names = [f"{a}{b}{c}_{c}{a}{b}_look_up" for a in letters for b in letters for c in letters]
    hidden, asked = lookalikes([*(named(n, "one") for n in names), named("aba_aab_look_up", "two")])
    assert hidden == {}
    assert {"two__aba_aab_look_up", "one__aba_aab_look_up"} <= set(asked)


def test_a_person_is_asked_about_each_call_of_a_doubted_tool_even_a_read() -> None:
    run = Run("Look at the weather in Rome.")
    spec = named("weather", "sky", declared=True, effect="read")
    assert run.verdict(spec, city="Rome") == "allow"
    run.known = replace(run.known, doubted={spec.name: "it looks like another"})
    decision, rule, _ = run.judged(spec, city="Rome")
    assert (decision.kind, rule) == ("ask", "tool")
    assert "it looks like another" in getattr(decision, "reason", "")


BOOK = tool("rooms__book_room", None, room=TEXT, server="rooms", origin="remote")
WORDS = "Book the room Blue, and then the room Green."


def test_an_undeclared_foreign_tool_asks_until_a_call_of_it_was_approved() -> None:
    run = Run(WORDS)
    decision, rule, grounds = run.judged(BOOK, room="Blue")
    assert (decision.kind, rule, grounds.also) == ("ask", "foreign", ())
    accepted = accepted_by(run.known.config, BOOK)
    assert accepted == pin_of(BOOK)
    run.known = replace(run.known, accepted=frozenset({accepted}))
    assert run.verdict(BOOK, room="Green") == "allow"
    assert run.verdict(replace(BOOK, description="It is another now."), room="Green") == "ask"
    assert run.verdict(replace(BOOK, name="rooms__book_room_2"), room="Green") == "ask"
    assert run.verdict(BOOK, room="Red") == "ask"  # the tool is accepted, another room is not


def test_a_yes_to_delete_something_accepts_no_tool() -> None:
    config = GuardConfig()
    assert accepted_by(config, tool("notes__delete_note", None, name=TEXT, server="notes")) == ""
    assert accepted_by(config, PAY) == ""

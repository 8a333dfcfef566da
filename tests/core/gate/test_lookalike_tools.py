"""Tools that look like others, and foreign ones that nobody has declared. Source: spec/guard.md, section 4.4."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gate_world import PAY, TEXT, Run, tool

from cases import cases
from surefoot.core.gate.effects import lookalikes
from surefoot.core.gate.verdict import accepted_by
from surefoot.core.text.json import pin_of
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import ToolSpec


def named(name: str, server: str = "", **more: object) -> ToolSpec:
    prefix = f"{server}__" if server else ""
    return ToolSpec(prefix + name, "", {}, server=server, **more)  # pyright: ignore[reportArgumentType]  # its fields


Tools = Sequence[tuple[str, str, Mapping[str, Any]]]
Told = Mapping[str, str]


@cases("gate/effects")
def test_which_tools_look_like_others(tools: Tools, hidden: Told, asked: Told) -> None:
    found = lookalikes([named(name, server, **more) for name, server, more in tools])
    for told, wanted in zip(found, (hidden, asked), strict=True):
        assert told.keys() == wanted.keys()
        assert all(name in told[of] for of, name in wanted.items())


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

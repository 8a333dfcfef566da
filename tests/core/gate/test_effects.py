from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.gate.effects import Guess, guess
from surefoot.types.tools import Effect, ToolSpec


def tool(name: str, parameters: str = "", **more: object) -> ToolSpec:
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in parameters.split()}}
    return ToolSpec(name, "", schema, **more)  # type: ignore[arg-type]  # each row gives fields of a spec


@cases("gate/effects")
def test_the_first_known_word_of_a_name_decides(name: str, effect: Effect | None) -> None:
    assert guess(tool(name)) == Guess(effect, effect, egress=False)


@cases("gate/effects")
def test_the_strongest_verb_of_a_name_decides(name: str, effect: str | None) -> None:
    assert guess(tool(name)).effect == effect


@cases("gate/effects")
def test_money_and_people_raise(name: str, parameters: str, effect: Effect, own: Effect) -> None:
    assert guess(tool(name, parameters)) == Guess(effect, own, egress=False)


@cases("gate/effects")
def test_a_read_of_an_address_carries_it_out(name: str, parameters: str, *, egress: bool) -> None:
    assert guess(tool(name, parameters)).egress is egress


def test_a_declared_tool_is_what_it_says() -> None:
    spec = tool("send_money", "account", effect="read", declared=True)
    assert guess(spec) == Guess("read", "read", egress=False)
    assert guess(tool("page", "url", effect="read", declared=True)).egress
    assert not guess(tool("page", "url", effect="read", declared=True, roles={"url": "object"})).egress
    assert guess(tool("get", effect="read", declared=True, egress=True, server="s"), "none").egress


@cases("gate/effects")
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

"""A choice needs a word of the user's: who gets a power, how far a call reaches, where or about what it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate_world import TEXT, TEXTS, Run, rows, tool
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, each
from surefoot.core.gate.intent import read_words
from surefoot.types.tools import ToolSpec

FLAG: Mapping[str, object] = {"type": "boolean"}


def one_of(*values: str, **more: str) -> Mapping[str, object]:
    return {"type": "string", "enum": list(values), **more}


TOOLS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        tool("publish", "communicate", topic=TEXT, message=TEXT),
        tool("ship", "transact", item=TEXT, city=TEXT, country=TEXT),
        tool("share_file", "write", file=TEXT, email=TEXT, permission=one_of("r", "rw")),
        tool("invite", "communicate", email=TEXT, type=one_of("reader", "owner", default="reader")),
        tool("save_page", "write", name=TEXT, text=TEXT, public={**FLAG, "default": False}),
        tool("set_alarm", "write", name=TEXT, enabled=FLAG),
        tool("delete_folder", "delete", path=TEXT, recursive=FLAG, force={**FLAG, "default": False}),
        tool("add_event", "write", title=TEXT, start=TEXT, location=TEXT, guests=TEXTS),
        tool("update_event", "write", event_id=TEXT, guests=TEXTS, location=TEXT),
        tool("get_event", "read", event_id=TEXT),
    )
}


@each("row", rows("choices.jsonl"))
def test_a_choice_of_the_model_is_asked_about_and_one_of_the_words_is_not(row: Mapping[str, Any]) -> None:
    run = Run(row["words"])
    for event in row.get("read", ()):
        run.read(TOOLS["get_event"], event, event_id=event["id"])
    assert run.verdict(TOOLS[row["tool"]], **row["arguments"]) == row["verdict"]


@given(st.sampled_from(["public", "admin", "recursive", "force", "is_owner", "permanent"]), st.booleans())
def test_a_power_that_no_word_gives_is_asked_about(name: str, default: bool) -> None:
    spec = tool("save_page", "write", name=TEXT, text=TEXT, **{name: {**FLAG, "default": default}})
    for words in ("Save the page 'minutes' with the text hello.", "把 hello 存到页面《minutes》。"):
        usual, other = (
            Run(words).verdict(spec, name="minutes", text="hello", **{name: value}) for value in (default, not default)
        )
        assert (usual, other) == ("allow", "ask")


@cases("gate/told")
def test_what_is_told_orders_nothing(words: str, effects: set[str]) -> None:
    assert read_words(words).effects_asked == {"read", *effects}

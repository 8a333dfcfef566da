"""A choice needs a word of the user's: who gets a power, how far a call reaches, where or about what it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from gate_world import TEXT, TEXTS, Run, rows, tool
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("row", rows("choices.jsonl"), ids=lambda row: f"{row['tool']}-{row['words'][:30]}")
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


@pytest.mark.parametrize(
    ("words", "effects"),
    [
        ("I'm planning a trip to Rome. What is the weather there?", set[str]()),
        ("We are currently booking our holidays; which hotel is best?", set[str]()),
        ("Find good writing paper.", set[str]()),
        ("Tell me what the booking confirmation says.", set[str]()),
        ("Check emails for the date of the party.", set[str]()),
        ("What does Bob's order say about my delivery?", set[str]()),
        ("They sent me an order that Bob deleted.", set[str]()),
        ("Which files are shared with ann@x.example?", set[str]()),
        ("It is in an email I got.", set[str]()),
        ("I want old.txt removed.", {"delete", "write"}),
        ("The bill must be paid.", {"transact"}),
        ("Help me plan a trip.", {"write"}),
        ("Please start deleting old.txt.", {"delete"}),
        ("Mail Bob's order to ann@x.example.", {"communicate"}),
        ("Process the payment of 50 EUR to Ann.", {"transact"}),
        ("我们正在计划一次旅行，天气怎么样？", set[str]()),
        ("我在订酒店，哪家最好？", set[str]()),
        ("打开计划书，看看第一页。", set[str]()),
        ("帮我计划一次旅行。", {"write"}),
        ("订酒店。", {"transact"}),
    ],
)
def test_what_is_told_orders_nothing(words: str, effects: set[str]) -> None:
    assert read_words(words).effects_asked == {"read", *effects}

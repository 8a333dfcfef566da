"""What a read takes out of the house, and spellings that hide where a text leads: each is a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate_world import SEND, TEXT, Run, rows, tool
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from surefoot.types.tools import ToolSpec

LETTER = "The council moves the market from the old harbour to the square behind the library until the works are done."
TOOLS: Mapping[str, ToolSpec] = {
    spec.name: spec
    for spec in (
        SEND,
        tool("search_web", "read", query=TEXT, region=TEXT, egress=True),
        tool("lookup", "read", address=TEXT),
        tool("get_page", None, url=TEXT),
        tool("find_person", "read", email=TEXT),
        tool("read_note", "read", name=TEXT),
        tool("patient_file", "read", name=TEXT, private=True),
        tool("remove_file", "delete", path=TEXT),
    )
}
READ: Mapping[str, tuple[str, object]] = {
    "letter": ("read_note", LETTER),
    "host": ("read_note", "ask tracker.pl for more"),
    "patient": ("patient_file", {"diagnosis": "acute appendicitis of the left side", "code": "K35.80-XY77"}),
}


@each("row", rows("leaving.jsonl"))
def test_a_read_takes_nothing_out_and_a_spelling_hides_nothing(row: Mapping[str, Any]) -> None:
    run = Run(row["words"])
    for name in row.get("read", ()):
        run.read(TOOLS[READ[name][0]], READ[name][1], name="p1")
    assert run.verdict(TOOLS[row["tool"]], **row["arguments"]) == row["verdict"]


@given(st.integers(0, 50), st.integers(0, 60))
def test_more_than_64_characters_of_a_result_are_never_carried_along(start: int, more: int) -> None:
    run = Run("What is new in town? Look it up on the web.")
    run.read(TOOLS["read_note"], LETTER, name="town")
    taken = LETTER[start : start + more].strip()
    verdict = run.verdict(TOOLS["search_web"], query=f"news {taken}")
    assert verdict == ("ask" if len(taken) > 64 else "allow")


@given(st.sampled_from("-‐‑‒–—−.  \u00a0\u2007\u202f"), st.booleans())
def test_an_account_is_one_whatever_stands_between_its_digits(joint: str, wide: bool) -> None:
    account = joint.join(("DE89", "3704", "0044", "0532", "0130", "00"))
    if wide:
        account = "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in account)
    for words in ("Mail ann@x.example that the rent is due.", "给 ann@x.example 发邮件，说房租到期了。"):
        call = {"to": ["ann@x.example"], "subject": "rent", "body": f"the rent is due (房租到期了): {account}"}
        assert Run(words).verdict(SEND, **call) == "ask"

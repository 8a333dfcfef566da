"""Events, words and summaries to bytes and back. Source of the last two: spec/scale.md, section 8, item 4."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_cases import EVERY_KIND, LINES, TOOLS, started

from cases import cases, each
from surefoot.journal import codec
from surefoot.journal.raw import chain
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.errors import JournalError, JournalTooNew
from surefoot.types.events import VERSION, CallEnded, Event, ModelReplied, RunForked, RunResumed
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.messages import ModelMessage, Usage
from surefoot.types.ports import RunSummary, Standing
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.progress import StepIterationConfig
from surefoot.types.reply import Parsed, ParsedCall
from surefoot.types.selection import ToolProfile
from surefoot.types.tools import Catalogue, ToolResult
from surefoot.types.words import Approve, Cancel, Note, Refuse, Resume, Settle, Sign, Word

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def no_catalogue(digest: str, version: int) -> Catalogue:
    raise AssertionError((digest, version))


def test_there_is_a_case_of_every_kind() -> None:
    assert {type(event) for event in EVERY_KIND} == set(get_args(Event))


@each(("event", "line"), list(zip(EVERY_KIND, LINES, strict=True)))
def test_round_trip(event: Event, line: bytes) -> None:
    """A line that differs is a changed form: see `VERSION` in `types/events.py`."""
    body, blob = codec.encode(event)
    assert json.loads(body) == json.loads(line)
    assert (blob is not None) == (event.type == "RunStarted")
    assert codec.decode(body, VERSION, lambda _digest, _version: TOOLS) == event


@cases("journal_codec")
def test_a_record_with_fields_that_nobody_read_still_tells_the_same(kind: str, was: str, is_now: str) -> None:
    told = [(e, json.dumps(json.loads(line))) for e, line in zip(EVERY_KIND, LINES, strict=True) if e.type == kind]
    event, old = next((event, line.replace(is_now, was)) for event, line in told if is_now in line)
    assert was in old
    assert codec.decode(old.encode(), VERSION, no_catalogue) == event


@given(JSON, TEXT)
def test_any_json_value_comes_back(value: object, text: str) -> None:
    event = ModelReplied(1, ModelMessage("assistant", text), Parsed((ParsedCall(0, text, {text: value}),)))
    assert codec.decode(codec.encode(event)[0], VERSION, no_catalogue) == event


def test_a_value_that_json_cannot_hold_is_refused() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (object(), deep):
        with pytest.raises(JournalError, match="ModelReplied cannot be recorded"):
            codec.encode(ModelReplied(1, ModelMessage("assistant"), Parsed((ParsedCall(0, "t", {"x": value}),))))


@cases("journal_codec")
def test_of_a_configuration_only_what_differs_is_written(form: dict[str, object]) -> None:
    read = codec.decode(json.dumps({"type": "RunResumed", "by": "ann", "config": form}).encode(), VERSION, no_catalogue)
    assert isinstance(read, RunResumed)
    config, usual = read.config, LoopConfig()
    assert config is not None
    assert {one.name for one in fields(usual) if getattr(config, one.name) != getattr(usual, one.name)} == set(form)
    for event in (replace(started(), config=config), read, RunForked("b", "a", 1, config=config)):
        body, _ = codec.encode(event)
        assert json.loads(body)["config"] == form
        assert codec.decode(body, VERSION, lambda _digest, _version: TOOLS) == event
    assert json.loads(codec.encode(RunResumed("ann"))[0])["config"] is None


@cases("journal_codec")
def test_defaults_that_journals_leave_out_are_what_they_were(kind: str, defaults: dict[str, object]) -> None:
    """Whoever changes one gives it a row in `UPGRADES`, or old runs come to mean something else."""
    made = {one.__name__: one for one in (Budget, LoopConfig, StepIterationConfig, ToolProfile, PreHydrationConfig)}
    config = ConventionsConfig(".") if kind == "ConventionsConfig" else made[kind]()
    assert {name: getattr(config, name) for name in defaults} == defaults


def test_a_catalogue_is_kept_once_under_its_digest() -> None:
    (body, blob), (_, again) = codec.encode(started("a")), codec.encode(started("b"))
    assert blob is not None
    assert again is blob
    assert blob[0].encode() in body
    assert b"exam_score" not in body
    assert codec.decode_catalogue(blob[1], VERSION) == TOOLS


def test_the_hash_covers_form_time_body_and_what_went_before() -> None:
    hashes = {
        chain(codec.genesis("a"), 1, 0.0, b"{}"),
        chain(codec.genesis("b"), 1, 0.0, b"{}"),
        chain(codec.genesis("a"), 2, 0.0, b"{}"),
        chain(codec.genesis("a"), 1, 0.5, b"{}"),
        chain(codec.genesis("a"), 1, 0.0, b"{ }"),
    }
    assert len(hashes) == 5


@each(
    "body",
    [b"", b"{", b"[]", b"1", b"{}", b'{"type": "Nothing"}', b'{"type": "CallStarted"}', b"\xff", b"[" * 200_000,
     b'{"type": "RunResumed", "by": "x", "config": {"nudges": -1}}'],
)  # fmt: skip
def test_what_is_no_event_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the decoder's words are not ours
        codec.decode(body, VERSION, no_catalogue)


def test_fields_of_a_later_minor_change_are_passed_over() -> None:
    body = b'{"type": "CallEnded", "call_id": "c", "result": {"content": "x", "new": 1}, "more": 2}'
    assert codec.decode(body, VERSION, no_catalogue) == CallEnded("c", ToolResult("x"))


def test_old_records_are_upgraded_row_by_row() -> None:
    def two(record: codec.Record) -> codec.Record:
        return {**record, "by": record["who"]}

    def three(record: codec.Record) -> codec.Record:
        return {**record, "by": f"{record['by']}!"}

    rows = {1: two, 2: three}
    assert codec.upgrade({"who": "ann"}, 1, rows, 3)["by"] == "ann!"
    assert codec.upgrade({"by": "ann"}, 2, rows, 3)["by"] == "ann!"
    assert codec.upgrade({"by": "ann"}, 3, rows, 3) == {"by": "ann"}
    with pytest.raises(JournalTooNew, match="upgrade surefoot"):
        codec.upgrade({}, 4, rows, 3)
    with pytest.raises(ValueError, match="form 0"):
        codec.upgrade({}, 0, rows, 3)


@pytest.mark.parametrize(("old", "new"), [("safe", "lossless"), ("full", "lossless"), ("strict", "strict")])
def test_a_repair_that_guessed_is_read_as_what_is_left_of_it(old: str, new: str) -> None:
    body = json.dumps({"type": "RunResumed", "by": "ann", "config": {"repair": old, "nudges": 1}}).encode()
    event = codec.decode(body, 1, no_catalogue)
    assert isinstance(event, RunResumed)
    assert event.config == LoopConfig(repair=new, nudges=1)  # pyright: ignore[reportArgumentType]  # one of the literals


# --- words and summaries


TEXTS = st.text(max_size=30) | st.sampled_from(("\ud800", "红\0", '"\\', "\u202e"))
WORDS = st.text(min_size=1, max_size=9)
CALLS = st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple)
CONFIGS = st.sampled_from((LoopConfig(), LoopConfig(budget=Budget(max_steps=7), repair="strict")))
MEMBERS = {
    Approve: st.builds(Approve, CALLS, TEXTS, TEXTS),
    Refuse: st.builds(Refuse, CALLS, TEXTS, TEXTS),
    Settle: st.builds(Settle, TEXTS, st.sampled_from(("done", "not_done", "abandoned")), TEXTS, TEXTS, TEXTS),
    Sign: st.builds(Sign, st.integers(0, 9), st.sampled_from(("approved", "rejected", "revise")), TEXTS, TEXTS),
    Note: st.builds(Note, TEXTS, TEXTS),
    Cancel: st.builds(Cancel, TEXTS, TEXTS),
    Resume: st.builds(Resume, TEXTS, st.none() | CONFIGS),
}
COUNTS = st.integers(0, 2**60)
TIMES = st.floats(0.0, 2e9)
MAPS = st.dictionaries(TEXTS, TEXTS, max_size=3)
USAGES = st.builds(
    Usage, COUNTS, COUNTS, COUNTS, COUNTS, cost_usd=st.none() | st.floats(0, 9e9), estimated=st.booleans()
)
OF_TYPE: dict[str, st.SearchStrategy[object]] = {
    "str": TEXTS,
    "int": COUNTS,
    "float": TIMES,
    "bool": st.booleans(),
    "Usage": USAGES,
    "Mapping[str, str]": MAPS,
    "Standing": st.sampled_from(get_args(Standing)),
}
SUMMARIES = st.builds(
    RunSummary, **{one.name: OF_TYPE[str(one.type)] for one in fields(RunSummary)} | {"run_id": WORDS}
)


def test_every_kind_of_word_is_tried() -> None:
    assert set(MEMBERS) == set(get_args(Word))


@given(st.one_of(*MEMBERS.values()))
def test_a_word_comes_back(word: Word) -> None:
    assert codec.word_of(codec.encode_word(word)) == word


@given(SUMMARIES)
def test_a_summary_comes_back(summary: RunSummary) -> None:
    body = codec.encode_summary(summary)
    assert codec.summary_of(body) == summary
    told = json.loads(body)
    assert codec.summary_of(json.dumps({**told, "standing": 1}).encode()) is None
    assert codec.summary_of(json.dumps({**told, "more": ""}).encode()) is None

"""Words and summaries are read back as they were written (spec/scale.md, section 8, item 4)."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from surefoot.journal.codec import encode_summary, encode_word, summary_of, word_of
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.messages import Usage
from surefoot.types.ports import RunSummary, Standing
from surefoot.types.words import Approve, Cancel, Note, Refuse, Resume, Settle, Sign, Word

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
    assert word_of(encode_word(word)) == word


@given(SUMMARIES)
def test_a_summary_comes_back(summary: RunSummary) -> None:
    body = encode_summary(summary)
    assert summary_of(body) == summary
    told = json.loads(body)
    assert summary_of(json.dumps({**told, "standing": 1}).encode()) is None
    assert summary_of(json.dumps({**told, "more": ""}).encode()) is None

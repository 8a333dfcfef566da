"""What travels between workflow and activities comes back as it was; stored histories are replayed alike."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowHistory
from temporalio.converter import WorkflowSerializationContext
from temporalio.worker import Replayer

from surefoot.engines.temporal.payloads import MOST_BYTES, Shelf, decode_move, digest_of_move, encode_move, workflow_id
from surefoot.engines.temporal.worker import SANDBOX
from surefoot.engines.temporal.workflow import RunWorkflow, kind_of
from surefoot.journal.codec import warm
from surefoot.journal.memory import MemoryJournal
from surefoot.types.moves import StepMove, Think, WorldMove

pytestmark = pytest.mark.anyio

KINDS = {*get_args(WorldMove), *get_args(StepMove)}
MOVES = st.one_of([st.from_type(kind) for kind in sorted(KINDS, key=lambda one: one.__name__)]).filter(
    lambda move: move == move  # noqa: PLR0124  # a wait of NaN seconds is none
)


@given(move=MOVES)
def test_a_move_is_read_as_it_was_written(move: WorldMove) -> None:
    assert decode_move(encode_move(move)) == move
    assert digest_of_move(decode_move(encode_move(move))) == digest_of_move(move)
    assert kind_of(move) in ("think", "act", "probe", "prepare", "stage", "plan")


@given(moves=st.lists(MOVES, unique=True, max_size=20))
def test_no_two_moves_have_one_digest(moves: list[WorldMove]) -> None:
    assert len({digest_of_move(move) for move in moves}) == len(moves)


def test_every_kind_of_move_is_written() -> None:
    for kind in KINDS:
        names = {one.name for one in fields(kind)}
        known = {"step": 1, "call_id": "c1", "directory": "a", "purpose": "judge", "number": 1, "step_id": "s1"}
        known |= {"attempt": 1, "wait_s": 0.5, "name": "n", "version": 1, "move": Think(1)}
        move = kind(**{name: value for name, value in known.items() if name in names})
        assert decode_move(encode_move(move)) == move


@pytest.mark.parametrize("told", [{}, {"type": "Fly"}, {"type": "Act"}, {"type": "Act", "call_id": "1", "more": 2}])
def test_what_is_no_move_is_refused(told: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="is not a move"):
        decode_move(told)


@pytest.mark.parametrize("size", [0, 10, MOST_BYTES - 200, MOST_BYTES + 1, 5_000_000])
@pytest.mark.parametrize("is_plain", [True, False])
async def test_a_large_payload_is_kept_in_the_journal(size: int, is_plain: bool) -> None:
    store = MemoryJournal()
    await (await store.open("r1", create=True)).release()
    shelf = Shelf(store).with_context(WorkflowSerializationContext("default", workflow_id("r1")))
    data = b"a" * size if is_plain else b"".join(i.to_bytes(4, "big") for i in range(size // 4))
    given = [Payload(metadata={"encoding": b"json/plain", "more": b"x"}, data=data), Payload(data=b"small")]
    sent = await shelf.encode(given)
    assert all(one.ByteSize() <= MOST_BYTES + 100 for one in sent)
    assert await shelf.decode(sent) == given


HISTORIES = {
    path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "histories").glob("*.json")
}


@pytest.mark.parametrize("name", sorted(HISTORIES))
async def test_a_stored_history_is_replayed(name: str) -> None:
    """One that fails here: runs under way need `--deployment`, or are adopted; `histories/make.py` writes new ones."""
    history = WorkflowHistory.from_json("surefoot/stored", HISTORIES[name])
    warm()
    replayer = Replayer(workflows=[RunWorkflow], workflow_runner=SANDBOX, debug_mode=True)
    await replayer.replay_workflow(history)


def test_there_are_histories_of_a_run_that_has_begun_anew() -> None:
    assert {"short-0", "anew-0", "anew-1"} <= HISTORIES.keys()

"""Stored histories are replayed: a workflow that is under way survives a new build that decides alike."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from surefoot.engines.temporal.worker import SANDBOX
from surefoot.engines.temporal.workflow import RunWorkflow
from surefoot.journal.codec import warm

HISTORIES = {
    path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "histories").glob("*.json")
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted(HISTORIES))
async def test_a_stored_history_is_replayed(name: str) -> None:
    """One that fails here: runs under way need `--deployment`, or are adopted; `histories/make.py` writes new ones."""
    history = WorkflowHistory.from_json("surefoot/stored", HISTORIES[name])
    warm()
    replayer = Replayer(workflows=[RunWorkflow], workflow_runner=SANDBOX, debug_mode=True)
    await replayer.replay_workflow(history)


def test_there_are_histories_of_a_run_that_has_begun_anew() -> None:
    assert {"short-0", "anew-0", "anew-1"} <= HISTORIES.keys()

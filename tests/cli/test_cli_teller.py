"""A run told in lines: events in, lines out."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from cases import rows
from surefoot.cli.teller import Teller
from surefoot.core.state.state import EMPTY
from surefoot.journal.codec import decode
from surefoot.types.events import VERSION, Event, ModelReplied, ReferencesFound, RunStarted, Speaker
from surefoot.types.messages import ModelMessage, Usage
from surefoot.types.prehydration import Reference
from surefoot.types.reply import Parsed, ParsedCall
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolSpec

SCORE = ToolSpec("exam_score", "Score of a student.", {"type": "object"}, effect="read", idempotent=True)
STARTED = RunStarted("r1", Task("Who improved?"), {"solo": Speaker("test:m")}, Catalogue((SCORE,)), {})


def reply(*named: tuple[str, dict[str, object]], text: str | None = None, step: int = 1) -> ModelReplied:
    made = tuple(ParsedCall(at, name, arguments) for at, (name, arguments) in enumerate(named))
    return ModelReplied(step, ModelMessage("assistant", text or "", usage=Usage(7, 3)), Parsed(made, content=text))


SECRET = "https://joe:pw@x.org/?token=abc"
FETCHING = ReferencesFound((Reference("url", SECRET),), calls=(ParsedCall(0, "page", {"url": SECRET}),))
ALICE = reply(("exam_score", {"name": "Alice"}), text="I look her up.")
TWO = reply(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "小明"}))


SPEAKERS = {"thinker": Speaker("http://ada:pw@h/v1#t"), "actor": Speaker("test:a")}
DUAL = RunStarted("r1", Task("Who improved?"), SPEAKERS, Catalogue((SCORE,)), {}, reasoner="dual")


def told(*events: Event, width: int = 80, detail: bool = False) -> list[str]:
    """The lines of the last of these events, each a tenth of a second after the one before."""
    teller = Teller(EMPTY, width=width, detail=detail)
    lines: list[str] = []
    for at, event in enumerate(events):
        lines = [" " * line.indent + line.text for line in teller.tell(event, 100 + at / 10)]
    return lines


def no_catalogue(digest: str, version: int) -> Catalogue:
    raise NotImplementedError(f"{digest} of form {version}: the starts of runs have names")


@pytest.mark.parametrize("case", rows("cli_lines"))
def test_each_event_has_its_line_and_of_two_models_it_says_whose(case: Mapping[str, Any]) -> None:
    """The lines of the last event of each case; some events have names above, others are as a journal holds them."""
    named = {"STARTED": STARTED, "DUAL": DUAL, "ALICE": ALICE, "TWO": TWO, "FETCHING": FETCHING}
    events = [
        named[one] if isinstance(one, str) else decode(json.dumps(one).encode(), VERSION, no_catalogue)
        for one in case["events"]
    ]
    assert told(*events, **case.get("how", {})) == case["told"]

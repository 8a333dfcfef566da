"""A run in one line: what a list shows of it, made record by record."""

from functools import reduce

import pytest

from surefoot import Catalogue, Task
from surefoot.core.state.summary import head, is_word, summarise
from surefoot.types import events
from surefoot.types.outcomes import Allow, Ask, Cancelled, Completed, Stopped
from surefoot.types.plan_events import PlanSigned
from surefoot.types.ports import NO_RECORDS, RunSummary

STARTED = events.RunStarted("r1", Task("Sum it up."), {"solo": events.Speaker("test:one")}, Catalogue(()), {})


def of(*happened: events.Event) -> RunSummary:
    return reduce(lambda before, one: summarise(before, (one[1],), 10.0 + one[0]), enumerate(happened), NO_RECORDS)


def test_a_run_from_its_start_to_its_end() -> None:
    one = of(STARTED, events.CallStarted("1.0"), events.CallStarted("1.0", 2), events.RunEnded(Completed("done")))
    assert (one.run_id, one.task, one.model, one.events, one.calls) == ("r1", "Sum it up.", "test:one", 4, 1)
    assert (one.started_at, one.changed_at, one.status, one.answer) == (10.0, 13.0, "completed", "done")
    assert of(STARTED, events.RunEnded(Stopped("steps", "so far"))).reason == "steps"
    assert of(STARTED, events.RunEnded(Cancelled("Ada"))).reason == "Ada"


def test_a_run_that_is_taken_up_has_not_ended() -> None:
    again = of(
        STARTED, events.RunEnded(Completed("done")), events.RunResumed("Ada", {"solo": events.Speaker("test:two")})
    )
    assert (again.status, again.answer, again.model) == ("running", "", "test:two")
    fork = of(STARTED, events.RunForked("r2", "r1", 1))
    assert (fork.run_id, fork.parent, fork.started_at, fork.task) == ("r2", "r1", 11.0, "Sum it up.")


def test_the_end_of_a_step_is_not_that_of_the_run() -> None:
    assert of(STARTED, events.InStep("s1", 1, events.RunEnded(Completed("of the step")))).status == "running"


@pytest.mark.parametrize(
    "word",
    [
        events.CallJudged("1.0", Allow(), by="Ada"),
        events.InStep("s1", 1, events.DoubtSettled("s1.1.0", "done", "Ada")),
        PlanSigned(1, "approved", "Ada"),
    ],
)
def test_after_a_persons_word_a_run_is_ready(word: events.Event) -> None:
    assert is_word(word)
    assert of(STARTED, word).standing == "ready"
    assert of(STARTED, word, events.CallStarted("1.0")).standing == ""


@pytest.mark.parametrize(
    "event", [events.CallJudged("1.0", Ask("really?")), events.DoubtSettled("1.0", "not_done", "probe")]
)
def test_what_nobody_said_is_not_a_word(event: events.Event) -> None:
    assert not is_word(event)
    assert of(STARTED, event).standing == ""


def test_a_long_task_is_cut_and_an_address_in_it_is_not() -> None:
    assert head("x" * 300) == "x" * 200
    assert head("short https://ann:pw@host/") == "short https://ann:pw@host/"
    assert head("y" * 180 + " https://ann:a-long-password@host/path") == "y" * 180 + " …"

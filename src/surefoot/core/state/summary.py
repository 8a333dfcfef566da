"""A run in one line, kept up to date record by record: no list of runs has to read a journal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, assert_never

from surefoot.core.state.turn import changed
from surefoot.types import events
from surefoot.types.guard_events import Asking
from surefoot.types.inner import CallPaused, InnerRun
from surefoot.types.outcomes import Cancelled, Completed, CompletedPartial, Stopped
from surefoot.types.plan_events import PlanSigned, ProposalMade
from surefoot.types.ports import RunFilter, RunSummary
from surefoot.types.usage import NO_USAGE

HEAD_CHARS = 200  # how much of a task and of an answer is shown
LEAST_SEARCHED = 3  # from how many characters on a text is looked for anywhere
_SUMMARY_LAG = 128  # how many records what is kept of a driven run may be behind
_SUMMARY_AGE_S = 1.0  # what lists show of a driven run is at most so old, if anything has happened since
_WORDS = (events.CallJudged, CallPaused, events.DoubtSettled, events.ValuesEndorsed, PlanSigned)
_NOBODY = ("", "probe", "developer")


def is_word(event: events.Event) -> bool:
    """Whether that is a person's word about what the run waits for."""
    inner = event.event if type(event) is events.InStep else event
    return isinstance(inner, _WORDS) and inner.by not in _NOBODY


def summarise(before: RunSummary, happened: Sequence[events.Event], at: float) -> RunSummary:
    """The summary of a run once it has more records, appended at `at`. Its cost does not grow with the run."""
    if not happened:
        return before
    standing = "ready" if is_word(happened[-1]) else ""
    after = changed(before, changed_at=at, events=before.events + len(happened), standing=standing)
    now: dict[str, Any] = after.__dict__
    for event in happened:
        inner = event.event if type(event) is events.InStep else event
        if (elapsed_s := getattr(inner, "elapsed_s", 0.0)) > now["elapsed_s"]:
            now["elapsed_s"] = elapsed_s
        match inner:
            case events.CallEnded(inner=None):  # the most frequent tell nothing else
                pass
            case events.CallJudged():
                if inner.decision.kind == "ask":
                    now["questions"] += 1
                elif inner.by:
                    now["questions"] = max(0, now["questions"] - 1)
            case events.CallStarted():
                now["calls"] += inner.attempt == 1
            case events.ModelReplied():
                now.update(requests=now["requests"] + inner.requests, usage=now["usage"] + inner.message.usage)
            case events.CallEnded(inner=InnerRun() as spent) | CallPaused(inner=spent):
                now.update(requests=now["requests"] + spent.requests, usage=now["usage"] + spent.usage)
            case events.RunStarted():
                models = {role: speaker.model for role, speaker in inner.speakers.items()}
                now.update(run_id=inner.run_id, started_at=at, task=head(inner.task.text), models=models)
                outer = inner.outer.run_id if inner.outer is not None else now["outer"]
                now.update(agent=inner.agent, labels=inner.labels, questions=0, outer=outer)
                if inner.follows:
                    now.update(parent=inner.follows, follows=True, status="running", reason="", answer="")
                    now.update(elapsed_s=0.0, requests=0, calls=0, usage=NO_USAGE)
            case events.RunForked() | events.RunResumed():
                models = {**now["models"], **{role: speaker.model for role, speaker in inner.speakers.items()}}
                now.update(models=models, status="running", reason="", answer="")
                if isinstance(inner, events.RunForked):
                    now.update(run_id=inner.run_id, started_at=at, parent=inner.parent, follows=False)
                    now.update(agent=inner.agent or now["agent"], labels=inner.labels, questions=0)
            case ProposalMade():
                asked = inner.requests if inner.by == "model" else 0
                now.update(requests=now["requests"] + asked, usage=now["usage"] + inner.message.usage)
            case events.ModelFailed(role=role, instead=instead):
                models = now["models"] if instead is None else {**now["models"], role: instead.model}
                now.update(usage=now["usage"] + inner.usage, models=models)
            case events.RunEnded(ending) if event is inner:  # a step's loop ends so, too
                answer = ending.answer if isinstance(ending, Completed | CompletedPartial | Stopped) else ""
                reason = ending.by if isinstance(ending, Cancelled) else getattr(ending, "reason", "")
                now.update(status=ending.kind, reason=reason, answer=head(answer), questions=0)
            case _ if isinstance(asking := getattr(inner, "asking", None), Asking):
                now.update(usage=now["usage"] + asking.usage, elapsed_s=max(now["elapsed_s"], asking.elapsed_s))
            case _:
                pass
    return after


def is_outdated(kept: RunSummary, now: RunSummary) -> bool:
    """Whether what is kept of a driven run is too far behind; whoever asks for one run reads the records since."""
    return (
        now.events > kept.events + _SUMMARY_LAG
        or now.changed_at > kept.changed_at + _SUMMARY_AGE_S
        or now.models is not kept.models
        or (now.status, now.standing, now.questions) != (kept.status, kept.standing, kept.questions)
    )


def head(text: str) -> str:
    """The beginning of a text. An address is never cut in two: what is secret in it could not be told any more."""
    cut = text[:HEAD_CHARS]
    return cut if cut == text else re.sub(r"\S*://\S*$", "…", cut)


def status_of(summary: RunSummary, *, is_driven: bool, is_ready: bool) -> str:
    """How a list calls a run: by its ending, or by who drives it and what it waits for."""
    if summary.status != "running" or is_driven:
        return summary.status
    match summary.standing:
        case "approval" | "in_doubt":
            return "paused"
        case "ready" | "set_aside":
            return summary.standing
        case "":
            return "queued" if is_ready and summary.agent else "interrupted"
        case _:
            assert_never(summary.standing)


def ready_at(summary: RunSummary, wake_at: float | None, *, has_words: bool) -> float | None:
    """When a worker may take up a run that nobody drives, in seconds since the epoch; None while it stands still."""
    if summary.standing == "set_aside" or summary.outer:  # the run of an agent goes on within the one that has asked
        return None
    if has_words or (summary.status == "running" and summary.standing in ("", "ready")):
        return 0.0
    return wake_at if summary.status == "running" else None


def is_listed(summary: RunSummary, wanted: RunFilter) -> bool:
    """Whether a run is among those that are wanted."""
    labels = {f"{name}={value}" for name, value in summary.labels.items()}
    return (
        wanted.status in ("", summary.status)
        and wanted.agent in ("", summary.agent)
        and wanted.parent in ("", summary.parent)
        and labels.issuperset(wanted.labels)
        and (not wanted.waiting or summary.status == "paused" or summary.questions > 0)
        and (wanted.since is None or summary.started_at >= wanted.since)
        and (wanted.until is None or summary.started_at < wanted.until)
        and (not wanted.agents or summary.agent in wanted.agents)
        and summary.run_id.startswith(wanted.prefix)
        and (not wanted.q or _is_found(summary, labels, wanted.q))
    )


def _is_found(summary: RunSummary, labels: set[str], text: str) -> bool:
    """Whether a text is in what is looked through; a short one has to be how the id or a label begins."""
    if len(text) < LEAST_SEARCHED:
        return any(one.startswith(text) for one in (summary.run_id, *labels))
    texts = (summary.task, summary.answer, *summary.labels.values(), summary.run_id)
    return any(text.casefold() in one.casefold() for one in texts)

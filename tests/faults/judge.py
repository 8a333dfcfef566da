"""The judge of all fault tests: what a journal says, held against the book of what was really done and said.

The chain is whole and a replay gives the same; no effect that cannot be taken back twice, and none missing from a run
that was completed; each run has ended, or stands with a reason; each question was answered once, by a word that named
what was shown; and no record of a driver whose place was taken.

What a standby lacks that takes over is lost with its server. So of what was done between the cut and the end of that
server an effect may be made once more, a word may not count, and a run may be unknown: that, and no more.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Any

from work import EXPIRES_S, REPEATABLE, noted, wanted

from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.types import events
from surefoot.types.outcomes import Ask, Cancelled, Deny
from surefoot.types.ports import JournalStore, Recorded

Line = Mapping[str, Any]  # Any: JSON
Lapse = tuple[float, float]
"""From when until when what a server took was lost with it."""

_WRITER = re.compile(r", by (\d+)$|^by (\d+)$")


@dataclass
class Verdict:
    """What was found. `figures` are counts, `waits` seconds."""

    faults: list[str] = field(default_factory=list[str])
    figures: Counter[str] = field(default_factory=Counter[str])
    waits: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict[str, list[float]](list))

    def add(self, other: Verdict) -> None:
        """Take in what another judge has found."""
        self.faults += other.faults
        self.figures += other.figures
        for name, seconds in other.waits.items():
            self.waits[name] += seconds

    def line(self, name: str) -> str:
        """How long one schedule took, and how many faults it had."""
        return f"{name}: {self.waits['a schedule'][0]:.1f} s, faults: {len(self.faults)}"

    def told(self) -> str:
        """The figures, the waits, and every fault."""
        lines = [f"{name}: {count}" for name, count in sorted(self.figures.items())]
        for name, seconds in sorted(self.waits.items()):
            order = sorted(seconds)
            half, most = order[len(order) // 2], order[-1]
            lines.append(f"{name}: {len(order)}, half of them within {half:.3f} s, all within {most:.3f} s")
        return "\n".join((*lines, *(f"FAULT {fault}" for fault in self.faults)))


def inner(event: events.Event) -> events.Event:
    """What happened, also within a step of a plan."""
    return event.event if isinstance(event, events.InStep) else event


@dataclass
class _Run:
    """One run under judgement."""

    run_id: str
    task: str
    records: Sequence[Recorded]
    book: Sequence[Line]
    verdict: Verdict
    lapses: Sequence[Lapse]
    wrote: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])

    def of(self, *kinds: type[events.Event]) -> Iterator[tuple[float, Any]]:  # Any: one of the kinds
        return ((one.at, inner(one.event)) for one in self.records if isinstance(inner(one.event), kinds))

    def fault(self, told: str) -> None:
        self.verdict.faults.append(f"{self.run_id}: {told}")

    @property
    def heard_of(self) -> Iterator[Line]:
        """The words to this run that were acknowledged, but for those that may be lost."""
        since = {line["by"]: line["at"] for line in self.book if line["what"] == "says" and line["run"] == self.run_id}
        said = (line for line in self.book if line["what"] == "said" and line["run"] == self.run_id)
        return (line for line in said if not _is_in(self.lapses, since[line["by"]], line["at"]))

    def judge_effects(self, made: Mapping[tuple[str, bool], int]) -> None:
        """Each effect as often as it may be: of a run that was completed, once, or never where somebody refused it.

        `made` says how often each was begun in a lapse, and how often outside.
        """
        said = {line["by"]: line for line in self.book if line["what"] == "says"}
        is_completed = any(event.ending.kind == "completed" for _, event in self.of(events.RunEnded))
        no = [event for _, event in self.of(events.CallJudged) if isinstance(event.decision, Deny)]
        refused = {said[event.by].get("key") for event in no if event.by in said}
        if not no and any(event.ending.kind not in ("completed", "cancelled") for _, event in self.of(events.RunEnded)):
            self.fault(f"it ended {self.records[-1].event}, though nobody had refused anything")
        is_all_told = len(refused) == len(no)  # else questions have expired, or something failed
        for kind, given in (call for turn in wanted(self.task) for call in turn):
            key = given["key"]
            times, lost = made.get((key, False), 0), made.get((key, True), 0)
            if max(times, lost) > 1 and kind not in REPEATABLE:
                self.fault(f"{kind} {key} was done {times} times, and {lost} times in a lapse")
            elif times and lost and kind not in REPEATABLE:
                self.verdict.figures["effects made twice, once in a lapse"] += 1
            if key in refused and times:
                self.fault(f"{kind} {key} was done, though somebody had refused it")
            if is_completed and is_all_told and key not in refused and not times and not lost:
                self.fault(f"{kind} {key} was never done, though the run was completed")

    def judge_answers(self) -> None:
        """Each question at most once, by the word that it was, and each word that counted has done something."""
        said = {line["by"]: line for line in self.book if line["what"] == "says" and line["run"] == self.run_id}
        asked: dict[str, float] = {}
        used = Counter[str]()
        for at, event in self.of(events.CallJudged, events.DoubtSettled):
            if isinstance(event, events.CallJudged) and isinstance(event.decision, Ask):
                asked[event.call_id] = at
            elif isinstance(event, events.CallJudged) and event.by:
                if event.call_id not in asked:
                    self.fault(f"{event.call_id} was answered by {event.by}, but no question about it was open")
                    continue
                since = asked.pop(event.call_id)
                if event.rule == "expired":
                    self.verdict.waits["expired after its time"].append(at - since - EXPIRES_S)
            if event_by := getattr(event, "by", ""):
                used[event_by] += 1
        for by, line in said.items():
            if used[by] > 1 or (used[by] and line.get("is_wrong")):
                self.fault(f"{line['word']} {by} counted {used[by]} times; wrong digest: {line.get('is_wrong')}")
        for line in self.book:
            if line["what"] == "unsaid" and not _is_in(self.lapses, said[line["by"]]["at"], line["at"]):
                self.fault(f"{line['by']} was told: {line['why']}")
        for line in self.heard_of:
            self.verdict.figures[f"words: {line['word']} {line['outcome'] or 'later'}"] += 1
            if line["outcome"] == "applied" and "key" in line and used[line["by"]] != 1:
                self.fault(f"{line['word']} {line['by']} counts, but nothing on record is by it")
        for at, event in self.of(events.RunEnded):
            if isinstance(event.ending, Cancelled) and event.ending.by in said:
                self.verdict.waits["cancelled after the word"].append(at - said[event.ending.by]["at"])

    def judge_drivers(self) -> None:
        """Who has written what: fences only grow, and each record is by a process that had one of that time."""
        taken = [line for line in self.book if line["what"] == "drives" and line["run"] == self.run_id]
        gone = {line["victim"]: line for line in self.book if line["what"] == "gone"}
        born = {line["pid"]: line["at"] for line in self.book if line["what"] == "born"}
        fence, last = 0, 0
        for at, event in self.of(events.ModelReplied, events.CallEnded, events.DriverChanged):
            if isinstance(event, events.DriverChanged):
                if event.fence <= fence and any(one["fence"] == fence and one["pid"] != last for one in taken):
                    self.fault(f"fence {event.fence} came after fence {fence}")
                fence = event.fence
                victims = [gone[one["pid"]] for one in taken if one["fence"] < fence and one["pid"] in gone]
                now = next((one["at"] for one in taken if one["fence"] == fence), at)  # by a clock that is right
                if victims and victims[-1]["at"] < now:
                    how = "killed" if victims[-1]["signal"] == SIGKILL else "stopped"
                    since = max(victims[-1]["at"], born.get(int(event.by.split()[-1]), 0.0))
                    self.verdict.waits[f"taken over from one that was {how}"].append(now - since)
                continue
            text = event.message.content if isinstance(event, events.ModelReplied) else event.result.content
            if (match := _WRITER.search(text)) is None:
                continue
            pid = int(match[1] or match[2])
            held = [one["fence"] for one in taken if one["pid"] == pid and one["fence"] >= fence]
            if not held:
                self.fault(f"process {pid} wrote a record behind fence {fence}, when it drove no more")
                continue
            fence, last = min(held), pid
            self.wrote.append((pid, at))


def _is_in(lapses: Sequence[Lapse], since: float, until: float) -> bool:
    """Whether something that lasted so long did so in a lapse, also in part."""
    return any(since <= end and until >= cut for cut, end in lapses)


def _lapses(lines: Sequence[Line], verdict: Verdict) -> Sequence[Lapse]:
    """When what a server took was lost with it, where something was: from the last commit that its standby has got."""
    for line in lines:
        if "lost" in line:
            verdict.figures["records lost with a server"] += line["lost"]
            if line["lost"] <= 0:
                verdict.faults.append("no record was lost with the server, so this shows nothing")
    cuts = [line["since"] for line in lines if line["what"] == "cut"]
    return [(cut, min(line["at"] for line in lines if line["what"] == "away" and line["at"] > cut)) for cut in cuts]


async def judge(store: JournalStore, book: Path, runs: Mapping[str, str], *, may_ask: bool = False) -> Verdict:
    """Judge these runs, given with their tasks. With `may_ask` a run may also stand with a question."""
    verdict, lines, wrote = Verdict(), noted(book), list[tuple[int, float]]()
    lapses = _lapses(lines, verdict)
    made = Counter(
        (line["key"], _is_in(lapses, line["since"], line["since"])) for line in lines if line["what"] == "made"
    )
    late = {
        run: [line["at"] for line in lines if line["what"] in ("submits", "submitted") and line["run"] == run]
        for run in (line["run"] for line in lines if line["what"] == "submitted")
    }
    gone = (Signals(line["signal"]).name for line in lines if line["what"] == "gone")
    verdict.figures.update(f"processes that got {name}" for name in gone)
    verdict.figures.update(f"database: {line['harm']}" for line in lines if line["what"] == "harm")
    for run_id, task in runs.items():
        if run_id in late and _is_in(lapses, *late[run_id]) and run_id not in await store.beginning(run_id, 1):
            verdict.figures["runs lost"] += 1
            continue
        records, wrong = await store.read_recorded(run_id)
        own = [line for line in lines if line.get("run", run_id) == run_id]
        one = _Run(run_id, task, records, own, verdict, lapses)
        recorded = [record.event for record in records]
        replayed, summary = replay(recorded), await store.summary(run_id)
        if wrong:
            one.fault(wrong)
        if replayed.differs_at is not None or replayed.state != fold(recorded):
            one.fault(f"a replay differs at record {replayed.differs_at}: {replayed.expected} {replayed.got}")
        last = recorded[-1]
        has_ended = isinstance(last, events.RunEnded)
        if not has_ended and not (may_ask and summary.standing in ("approval", "in_doubt")):
            one.fault(f"it stands without a reason: {summary.status}, {summary.standing or 'nothing to be answered'}")
        if summary.events != len(records) or (isinstance(last, events.RunEnded) and last.ending.kind != summary.status):
            one.fault(f"its summary tells of {summary.events} records and {summary.status}, it has {len(records)}")
        verdict.figures[f"runs {summary.status}"] += 1
        verdict.figures["records"] += len(records)
        one.judge_effects(made)
        one.judge_answers()
        one.judge_drivers()
        wrote += one.wrote
        numbers = {line["number"] for line in one.heard_of}
        unheard = [number for number in numbers if not (await store.posted(run_id, number)).outcome]
        if unheard:
            one.fault(f"words {unheard} were never heard")
    away = [line for line in lines if line["what"] == "away"]
    for gone, back in zip(away, [line["at"] for line in lines if line["what"] == "back"], strict=True):
        for pid in {pid for pid, at in wrote if at < gone["at"]} & {pid for pid, at in wrote if at > back}:
            first = min(at for one, at in wrote if one == pid and at > back)
            verdict.waits[f"went on once it was over: {gone['harm']}"].append(first - back)
    return verdict

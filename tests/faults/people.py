"""People who answer at random, in a process of their own: yes, no, with a digest that is wrong, twice, or cancel.

Each word has a name of its own as `by`, so the records tell which word it was. The book has a line before a word is
said, and one with what came of it. Doubts are settled by the book, and only once nobody drives any more who could
still do what is in doubt (`settles`). A process of people ends when no run needs any of them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from work import note, noted

from surefoot.core.loop.inbox import digest_of_call
from surefoot.core.plan.accept import waiting
from surefoot.core.state.turn import Call
from surefoot.run import state_of
from surefoot.speak import speak
from surefoot.types.errors import JournalError, RunUnknown, UsageError
from surefoot.types.ports import JournalStore, RunFilter, RunSummary
from surefoot.types.words import Approve, Cancel, Note, Refuse, Settle, Word

AT_WORK = ("running", "queued", "ready", "interrupted")
_PAUSE_S = 0.05
_MOST_RUNS = 1_000
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Habits:
    """How people answer: the shares of words that cancel a run, refuse, and name a wrong digest, and of notes.

    They leave alone what runs ask whose id begins with `leaves`, and doubts unless they settle those. While the file
    `stays` is there they do not go, though nobody needs them at the moment.
    """

    cancels: float = 0.01
    refuses: float = 0.15
    mistakes: float = 0.1
    notes: float = 0.02
    leaves: str = ""
    settles: bool = False
    stays: str = ""
    seed: int = 0
    limit_s: float = 60.0


@dataclass
class Person:
    """Somebody who says words to runs of a store, one after the other."""

    name: str
    store: JournalStore
    book: Path
    habits: Habits
    chance: random.Random
    said: int = 0

    async def say(self, run_id: str, word: Word, **about: object) -> None:
        """Say a word, now and then twice with one key, and put down what came of it."""
        kind = word.type.lower()
        note(what="says", run=run_id, by=word.by, word=kind, **about)
        times = 2 if self.chance.random() < self.habits.mistakes else 1
        try:
            heard = await asyncio.gather(*(speak(self.store, run_id, word, key=word.by) for _ in range(times)))
        except UsageError as error:  # the word, or its run, is lost
            note(what="unsaid", run=run_id, by=word.by, why=str(error))
            return
        for posted in heard:
            outcome, number = posted.outcome, posted.number
            note(what="said", run=run_id, by=word.by, word=kind, number=number, outcome=outcome, **about)

    async def answer(self, runs: Sequence[RunSummary]) -> None:
        """Do one thing about one run."""
        self.said += 1
        by, habits, dice = f"{self.name}-{self.said}", self.habits, self.chance.random()
        working = [one for one in runs if one.status in AT_WORK]
        if working and dice < habits.cancels + habits.notes:
            word = Cancel(by) if dice < habits.cancels else Note("Go on.", by)
            await self.say(self.chance.choice(working).run_id, word)
            return
        asking = [one for one in runs if one.questions or one.standing == "in_doubt"]
        asking = [one for one in asking if not habits.leaves or not one.run_id.startswith(habits.leaves)]
        if not asking:
            return
        run_id = self.chance.choice(asking).run_id
        asked = waiting(await state_of(self.store, run_id))
        questions = [one for one in asked if habits.settles or not one.is_in_doubt]
        if not questions:
            return
        call = self.chance.choice(questions)
        about = {"call": call.id, "key": call.arguments["key"]}
        is_wrong = self.chance.random() < habits.mistakes
        digest = "0" * 64 if is_wrong else digest_of_call(call)
        await self.say(run_id, self._word(call, digest, by), **about, is_wrong=is_wrong)

    def _word(self, call: Call, digest: str, by: str) -> Word:
        if call.is_in_doubt:
            made = [line.get("key") for line in noted(self.book) if line["what"] == "made"]
            is_made = call.arguments["key"] in made
            return Settle(call.id, "done" if is_made else "not_done", by, "as it was wanted" if is_made else "", digest)
        if self.chance.random() < self.habits.refuses:
            return Refuse(((call.id, digest),), by, "not this one")
        return Approve(((call.id, digest),), by)


async def answer_all(people: Sequence[Person]) -> None:
    """Answer until no run is at work or asks anything of these people, who have the same habits, or time is over."""
    (store, habits, chance), begun = (people[0].store, people[0].habits, people[0].chance), time.monotonic()
    last = begun
    while time.monotonic() < begun + habits.limit_s:
        try:
            runs = (await store.list(RunFilter(), limit=_MOST_RUNS)).runs
            is_needed = any(needs(one, settles=habits.settles) for one in runs)
            if not is_needed and not (habits.stays and Path(habits.stays).exists()):  # noqa: ASYNC240  # one look
                return
            await asyncio.gather(*(one.answer(runs) for one in people))
            last = time.monotonic()
        except (JournalError, RunUnknown):  # it is away, or a run was lost
            if time.monotonic() - last > _PATIENCE_S:
                raise
        await asyncio.sleep(_PAUSE_S * chance.random())


def needs(run: RunSummary, *, settles: bool) -> bool:
    """Whether a run still has to be driven or answered."""
    return run.status in AT_WORK or run.standing == "approval" or (settles and run.standing == "in_doubt")

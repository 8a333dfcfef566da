"""One run, driven: how it is taken up, with which hands it is made, and how it is left. `Agent` is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.state.state import EMPTY, State
from surefoot.run import Opened, Out_co, Run
from surefoot.runtime.admission import Admission
from surefoot.runtime.cast import Cast
from surefoot.runtime.drive import drive
from surefoot.runtime.hands import LiveHands
from surefoot.runtime.offers import Offered, Offers
from surefoot.runtime.services import RunServices, services_of
from surefoot.runtime.start import next_records
from surefoot.runtime.trajectories import Trajectories
from surefoot.runtime.under_way import Leave
from surefoot.runtime.world import Watch, keep_task
from surefoot.speak import Voice, at_rest, hear, state_now
from surefoot.telemetry import Live, has_provider
from surefoot.types.events import Event
from surefoot.types.outcomes import Completed
from surefoot.types.ports import Claimed, Durability, Encoder, RunJournal, ServiceKey, Tool
from surefoot.types.reflection import Evaluator
from surefoot.types.words import Posted, Resume

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge


class Driver(Voice[Out_co]):
    """What drives the runs of one recipe."""

    encoder: Encoder | None
    evaluators: Mapping[str, Evaluator]
    _admission: Admission
    _cast: Cast
    _prompts: Mapping[str, str]
    _offers: Offers
    _services: Mapping[ServiceKey, object]
    _knowledge: KnowledgeBridge | None
    _paths: Trajectories
    _recipe: str

    async def drive(
        self, claimed: Claimed, *, by: str, watch: Watch | None = None, stream: bool = False, leave: Leave | None = None
    ) -> Run[Out_co]:
        """Go on with a run that a worker has claimed, as whoever drove it would have; nobody has asked for anything.

        What was said to it meanwhile is heard. An agent that is made otherwise than the one it was begun with takes it
        up as `resume` does. `leave` says when it is to be left as it stands. Raises `LeaseLost` once others have it.
        """
        given = services_of(self._services, None)
        journal = partial(self._store.open, claimed.run_id, fence=claimed.fence)
        opened = Opened(await journal(), self._store)  # first: its lease is renewed while it waits for a place
        async with opened, self._admission.place():
            state, first, words = await self.take_up(opened, claimed, by)
            if first is None:
                return await at_rest(opened, words, Run.of(state, read=self._shape))
            drive = partial(self._drive, opened.journal, first, watch, given, words, stream=stream, state=state)
            return opened.leave(await drive(leave=leave))

    async def take_up(
        self, opened: Opened, claimed: Claimed, by: str
    ) -> tuple[State, Sequence[Event] | None, Sequence[Posted]]:
        """How a claimed run stands, what goes on record first (None: it stays at rest), and the words heard with that.

        Source: spec/scale.md, section 2.3.
        """
        state, words = await state_now(self._store, claimed.run_id, opened, claimed=claimed, by=by)
        word = words[-1].word if words else None
        stands = standing(state) and not next_moves(state)
        if stands or (state.ending is not None and (word is None or isinstance(state.ending, Completed))):
            return state, None, words
        first: list[Event] = []
        if word is not None or state.recipe not in ("", self._recipe) or state.run_id != claimed.run_id:
            config = word.config if isinstance(word, Resume) else None
            parts = (self._cast, self._offers, self.config)
            first = await next_records(claimed.run_id, state, parts, by=word.by if word else by, config=config)
        return state, first, words

    async def put_first(
        self,
        journal: RunJournal,
        state: State,
        first: Sequence[Event],
        words: Sequence[Posted],
        durability: Durability = "written",
    ) -> State:
        """Put on record how somebody takes a run up; its state then. Raises `UsageError` for what cannot be driven."""
        begun = await keep_task(journal, fold(first, state))
        self._cast.check_prices(begun.config)
        await journal.append(first, durability, heard=words)
        return begun

    async def hands(
        self,
        journal: RunJournal,
        state: State,
        given: Mapping[ServiceKey, object] | None = None,
        *,
        tools: Mapping[str, Tool] | None = None,
        watch: Watch | None = None,
        stream: bool = False,
        spans: Live | None = None,
    ) -> LiveHands:
        """What makes the moves of a run from that state on; whoever uses it closes its `services`."""
        tools = await self._offers.tools_of(state.tools) if tools is None else tools
        services = RunServices(services_of(self._services) if given is None else given)
        budget = state.config.budget if state.planning is None else state.planning.loops.budget
        own = (self._knowledge, self._paths, self.encoder, self.evaluators, self._shape, budget, self._store)
        inbox = partial(hear, self._store, journal)
        return LiveHands(self._cast, tools, journal, services, watch, stream, state.elapsed_s, *own, inbox, spans=spans)

    async def remember(self, journal: RunJournal, state: State) -> None:
        """Keep how a run has gone, for the gate of later ones."""
        if state.gate is not None:
            await self._paths.remember(journal, state)

    async def _drive(
        self,
        journal: RunJournal,
        first: Sequence[Event],
        watch: Watch | None,
        given: Mapping[ServiceKey, object],
        words: Sequence[Posted] = (),
        *,
        stream: bool,
        state: State = EMPTY,
        offered: Offered | None = None,
        drives: bool = True,
        leave: Leave | None = None,
    ) -> Run[Out_co]:
        """Put on record how somebody takes it up, then drive on from `state`, or leave that to a worker."""
        tools = offered.tools if offered else await self._offers.tools_of(state.tools)
        spans: Live | None = None
        if has_provider():
            spans = Live((await self._store.read_recorded(journal.run_id))[0] if state.seen else ())
            journal = spans.timed(journal)
        begun = await self.put_first(journal, state, first, words, "soon" if drives else "synced")
        if not drives:
            return Run.of(begun, read=self._shape)
        hands = await self.hands(journal, begun, given, tools=tools, watch=watch, stream=stream, spans=spans)
        async with hands.services:
            hands.announced(first)
            driven = drive(journal, hands, begun, leave)
            ended = await (driven if spans is None else spans.around(driven))
            await self.remember(journal, ended)
            return Run.of(ended, read=self._shape)

"""What can be plugged in: models, tools, journals. Each protocol says what its implementations MUST and MUST NOT do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from surefoot.types.archive import Archive
from surefoot.types.dataclass import dataclass, field
from surefoot.types.events import Event
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ToolProgress, Traits, Usage, models_line
from surefoot.types.tools import ToolResult, ToolSpec
from surefoot.types.words import Posted, Word

Standing = Literal["", "approval", "in_doubt", "ready", "set_aside"]
"""Why a run that has not ended stands still: what a person has to say; "ready", once they have said it; or "set_aside":
it made whoever drives it fail again and again, and a person has to look."""


@dataclass(frozen=True)  # no slots: one is made for each event, and copying a `__dict__` is one call
class RunSummary:
    """What a list of runs shows of one. Made of its records alone, by `core/state/summary.py`, and kept beside them.

    `status` is the ending's kind, or "running"; a store says "interrupted" of a run that nobody drives, "damaged" of
    one that it cannot read. `task` and `answer` are their beginnings; `calls` those that were started, each once. It is
    a fork of `parent` or, with `follows`, its next turn. A call of the run `outer` has asked this one. `questions` wait
    for a person. `change` grows over all runs of a store; 0: none is kept. Source: spec/scale.md, section 3.1.
    """

    run_id: str = ""
    started_at: float = 0.0
    changed_at: float = 0.0
    events: int = 0
    status: str = "running"
    standing: Standing = ""
    reason: str = ""
    task: str = ""
    answer: str = ""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    requests: int = 0
    calls: int = 0
    usage: Usage = Usage()
    elapsed_s: float = 0.0
    parent: str = ""
    follows: bool = False
    outer: str = ""
    agent: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    questions: int = 0
    change: int = 0

    @property
    def model(self) -> str:
        """The models in one line."""
        return models_line(self.models)


NO_RECORDS = RunSummary()  # a run before its first record


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs of a list are wanted; what is empty does not count. Text is looked for in task, answer and labels.

    `status` as a list shows it; `labels` are "name=value", all of which it has; `q` is a text; `since` and `until`
    bound `started_at`. `agents` are names of which one is its agent's, `prefix` is how its id begins.
    """

    status: str = ""
    agent: str = ""
    labels: tuple[str, ...] = ()
    q: str = ""
    waiting: bool = False
    since: float | None = None
    until: float | None = None
    parent: str = ""
    agents: tuple[str, ...] = ()
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of a list, newest first; `next` is where the next one begins, "" where there is none."""

    runs: tuple[RunSummary, ...]
    next: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that a worker may drive from now on. `fence` grows with each claim; `is_takeover`: its driver has died."""

    run_id: str
    agent: str
    fence: int
    is_takeover: bool = False


EVERY_RUN = RunFilter()
LEASE_S = 30  # how long, in seconds, a claimed run stays with a worker that was cut off, unless set otherwise
Durability = Literal["soon", "written", "synced"]
"""How safe an append is when it returns: queued; written, so that it survives this process; synced, power loss."""


class Model(Protocol):
    """One model behind one wire: one request, one reply.

    `name` is `provider:model` as the user wrote it; `modes` are the call modes that the wire can carry, best first;
    `traits` is what is known before the first request (spec/react.md, section 2).
    """

    @property
    def name(self) -> str: ...
    @property
    def modes(self) -> tuple[CallMode, ...]: ...
    @property
    def traits(self) -> Traits: ...

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply to one request.

        MUST raise only `ModelError` and its kinds (`TraitRefused` when a part of the request is not accepted), MUST
        close its connection when cancelled, MUST NOT run tools, remember anything of the conversation, or let a key
        appear in an error. When `emit` is given, pieces of the reply go to it as they arrive.
        """
        ...

    async def aclose(self) -> None:
        """Give back connections and memory; a later `send` opens them again."""
        ...


ServiceKey = type | tuple[type, str]
"""What a service is registered under: its type, or type and name when there are two of one type."""


class CallLine(Protocol):
    """The line from a call to the run that makes it. Tools use `ToolCallContext` in its place."""

    @property
    def cancelled(self) -> bool: ...

    def tell(self, signal: ToolProgress) -> None:
        """Pass a signal on to whoever watches. MUST NOT raise or block; any thread may ask."""
        ...

    async def service(self, key: ServiceKey) -> object:
        """The run's service of that key, made if need be. MUST NOT raise an error that tells of the service's value."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCallContext:
    """What a tool may know about its call. A tool gets it by declaring a parameter of this type.

    `idempotency_key` is the same for every attempt at this call and for no other call. `job` is the run with its
    children, `operator` the step of a plan ("main" without a plan). `deadline_s`: seconds that the call had left when
    it began; None without a limit.
    """

    run_id: str
    call_id: str
    idempotency_key: str
    attempt: int = 1
    job: str = ""
    operator: str = "main"
    deadline_s: float | None = None
    _line: CallLine | None = field(default=None, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the call any more: it ran out of time, or its run was cancelled.

        For functions in threads, which nobody can stop: look now and then, and raise once it is true.
        """
        return self._line is not None and self._line.cancelled

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Tell whoever watches how far the call is: in words, and as a part of a whole. Never journaled, never raises.

        May be called from any thread. Does nothing when nobody watches, or when the call is over.
        """
        if self._line is not None:
            self._line.tell(ToolProgress(self.call_id, text, done, total))


async def service_of(context: ToolCallContext, key: ServiceKey) -> object:
    """The service of that key for a call; the context is one itself. For those who call tools, not for tools.

    Raises what `CallLine.service` raises, and `LookupError` for a context that no run made.
    """
    if key is ToolCallContext:
        return context
    line = context._line  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # tools get services as parameters
    if line is None:
        raise LookupError("a service of this tool could not be given: the call is not part of a run")
    return await line.service(key)


class Encoder(Protocol):
    """Says how near texts are in meaning (spec/planning.md, section 15)."""

    async def likeness(self, asked: Sequence[str], texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """For each of `texts` its cosine to each of `asked`, -1.0 to 1.0.

        MUST give the same for the same texts on the same machine, whatever it is asked along with them, and MUST
        remember the meaning of `texts`, which come again, and not that of `asked`. Raises `ModelError`.
        """
        ...


class Tool(Protocol):
    """Something that a model can call."""

    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Run once. `arguments` are validated against `spec.parameters`.

        MUST give a `ToolResult` for whatever the tool does wrong, MUST NOT retry a call that is not idempotent.
        Cancellation goes through.
        """
        ...

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:
        """Did the interrupted call take effect? Its result if so, None if not; raising says that it could not tell.

        Only asked when `spec.has_probe`. MUST NOT say None while an attempt of this process may still be running.
        """
        ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the journal: `seq` counts from 0, `at`: seconds since the epoch; `hash` chains it."""

    seq: int
    at: float
    hash: str
    event: Event


class Place(NamedTuple):
    """Where a run stands: the next record is `seq`, and its hash follows `hash` (32 bytes)."""

    seq: int
    hash: bytes


class RunJournal(Protocol):
    """The journal of one run, opened by the one who drives it. `place` is where the next append goes."""

    @property
    def run_id(self) -> str: ...
    @property
    def place(self) -> Place: ...

    async def read(self, since: int = 0) -> Sequence[Event]:
        """Events from position `since` on (0 is the first), oldest first; empty when there are none.

        MUST give the same events for the same `since` for ever. Costs O(events returned). For a fork the shared prefix
        comes first. Raises `JournalCorrupt` (use `JournalStore.read_recorded` to get at what precedes the damage).
        """
        ...

    async def append(
        self,
        events: Sequence[Event],
        durability: Durability = "soon",
        *,
        heard: Sequence[Posted] = (),
        at: float | None = None,
        place: Place | None = None,
    ) -> Place:
        """Add events at the end, all or none, in this order. Returns when they are as safe as asked; the place then.

        `heard` are words of the inbox with what came of them, kept in the same piece: a word counts once. MUST raise
        `JournalError` when an earlier append that was queued could not be written. MUST NOT reorder.
        `at` is the time of the records, now where none is given. At a `place` that is not the end, MUST return as if
        written where the same records (equal hashes) stand there, else raise `LeaseLost`. Source: spec/scale.md, 2.1.
        """
        ...

    async def words(self) -> Sequence[Posted]:
        """What was said to this run and has no outcome yet, in the order in which it came."""
        ...

    def listen(self, wake: Callable[[], None] | None) -> None:
        """Call `wake` on this event loop whenever something is said to this run, until it is released or None is given.

        It comes at most a moment late, and may come for nothing. MUST be called at once when words wait already.
        """
        ...

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their SHA-256 (hex), which is returned. Written with the next append."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there, `JournalCorrupt` when altered."""
        ...

    async def release(self, standing: Standing = "", wake_at: float | None = None, *, why: str = "") -> None:
        """Write all that is queued and let others drive this run. `standing`: why it stands still, if it does.

        One that stands still is ready for a worker when a word comes, or at the time `wake_at`; any other at once.
        `why` is kept of one that is set aside.
        """
        ...


class JournalStore(Archive, Protocol):
    """Where runs are kept."""

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> RunJournal:
        """Take the right to drive a run. Raises `RunBusy` while another has it, `UsageError` for an unknown run.

        With `create` it must be new, or have no records and no driver: whoever made it died before the first. With the
        `fence` of a claim, in any process; MUST raise `LeaseLost` once others have it. Else the fence grows.
        """
        ...

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        """Make a run that shares the records of `parent` before `at`. Copies no events."""
        ...

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        """The newest runs first. MUST NOT read their records where a summary of them is kept."""
        ...

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        """The ids that begin so, of runs with records, in their order. Costs O(ids returned)."""
        ...

    async def read_recorded(
        self, run_id: str, since: int = 0, limit: int | None = None
    ) -> tuple[Sequence[Recorded], str]:
        """All that can be read, at most `limit`, and what is wrong with the rest of that ("" when nothing is)."""
        ...

    def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        """Records from `since` on, then each new one, until the run ends; also what others write."""
        ...

    async def put_blob(self, run_id: str, data: bytes) -> str:
        """As `RunJournal.put_blob`, without the right to drive; written when it returns."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """As `RunJournal.get_blob`, without the right to drive."""
        ...

    async def say(self, run_id: str, word: Word, *, key: str = "") -> Posted:
        """Put a word into the inbox of a run and wake whoever drives it.

        With a `key` that was used for this run before: what came of the first word, or `UsageError` for another word.
        """
        ...

    async def posted(self, run_id: str, number: int) -> Posted:
        """A word of a run, with what came of it. Raises `UsageError` where there is none of that number."""
        ...

    async def list(self, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> RunPage:
        """A page of the runs that are wanted, newest first; `after` is `RunPage.next`. Reads no journal."""
        ...

    async def count(self, wanted: RunFilter = EVERY_RUN, most: int = 10_000) -> int:
        """How many runs are wanted; counting ends at `most`."""
        ...

    async def summary(self, run_id: str) -> RunSummary:
        """A run in one line, as of its last record. Raises `UsageError` for an unknown run."""
        ...

    def changes(self, since: int | None = None) -> AsyncIterator[RunSummary]:
        """Summaries kept after the change `since` (None: from now on), then each as it changes, until it is closed."""
        ...

    async def delete(self, run_id: str, *, end: str = "") -> None:
        """Take a run out. Raises `RunBusy` if driven or `end` is not its last hash, `UsageError` if it is shared."""
        ...

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:
        """Take up to so many runs of these agents: first those whose driver is gone, then those ready longest.

        `open` them within the lease, and `renew` it; a lease that is over lets others take the run.
        """
        ...

    async def renew(self, lease_s: float) -> Collection[str]:
        """Extend the leases of all claimed runs that this store drives; gives those that others have taken."""
        ...

    async def aclose(self) -> None:
        """Write what is queued and close."""
        ...

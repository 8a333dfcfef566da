"""What requests say and answers hold, as types: they check what comes in, and the OpenAPI document is made of them."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass as checked

from surefoot.telling.question import Question
from surefoot.telling.rows import Row
from surefoot.types.attachments import Attachment
from surefoot.types.errors import UsageError
from surefoot.types.events import Outcome
from surefoot.types.plan import ContextDocument, PlanStep, TaskContext
from surefoot.types.ports import RunSummary

T = TypeVar("T")

EXACT = ConfigDict(extra="forbid")
"""Unknown fields are refused."""
_LOOSE = ConfigDict(extra="allow")

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Label = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]
Count = Annotated[int, Field(ge=0, le=2**53)]
Reason = Annotated[str, Field(max_length=10_000)]


def _knows(kind: type) -> BeforeValidator:
    """Refuse fields that a type of ours does not have; pydantic would pass over them."""

    def look(value: object) -> object:
        if isinstance(value, Mapping):
            unknown = cast("Mapping[str, object]", value).keys() - {one.name for one in fields(kind)}
            if unknown:
                raise ValueError(f"unknown field {min(unknown)!r}")
            for document in cast("Mapping[str, Any]", value).get("documents", ()) if kind is TaskContext else ():
                _knows(ContextDocument).func(document)  # type: ignore[call-arg]  # it takes a value alone
        return value

    return BeforeValidator(look)


@checked(frozen=True, config=EXACT)
class File:
    """What comes with a task: a `text`, or `data` in base64. It is material, never the user's words."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    text: str = ""
    data: str = ""
    media_type: str = ""

    def attachment(self) -> Attachment:
        """It as a run keeps it. Raises `UsageError` for a file that cannot be attached."""
        if not self.data:
            return Attachment(self.name, self.text)
        try:
            return Attachment.from_bytes(b64decode(self.data, validate=True), self.name, media_type=self.media_type)
        except NotBase64 as error:
            raise UsageError(f"{self.name}: data is not valid base64") from error


@checked(frozen=True, config=EXACT)
class Tighter:
    """Limits of one run; none can be looser than its agent's."""

    max_steps: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    max_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


@checked(frozen=True, config=EXACT)
class Start:
    """`POST /v1/runs`. With `stream` the answer is the stream of the run's events."""

    has_task: ClassVar[bool] = True
    agent: Name
    task: Annotated[str, Field(min_length=1)]
    steps: tuple[Annotated[PlanStep, _knows(PlanStep)], ...] = ()
    attachments: Annotated[tuple[File, ...], Field(max_length=50)] = ()
    context: Annotated[TaskContext, _knows(TaskContext)] = TaskContext()
    labels: Annotated[Mapping[Label, Annotated[str, Field(max_length=200)]], Field(max_length=32)] = Field(
        default_factory=dict[str, str]
    )
    limits: Tighter = Tighter()
    stream: bool = False


@checked(frozen=True, config=EXACT)
class Fork:
    """`POST /v1/runs/{run_id}/fork`: a run that shares the records before `at`."""

    at: Annotated[int, Field(ge=1, le=2**53)]
    agent: Name | None = None
    limits: Tighter = Tighter()
    labels: Annotated[Mapping[Label, Annotated[str, Field(max_length=200)]], Field(max_length=32)] = Field(
        default_factory=dict[str, str]
    )


@checked(frozen=True, config=EXACT)
class Yes:
    """Yes to a call, exactly as it was shown."""

    digest: Annotated[str, Field(min_length=1, max_length=200)]
    note: Reason = ""


@checked(frozen=True, config=EXACT)
class No:
    """No to a call; the model reads the reason."""

    digest: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Reason = ""


@checked(frozen=True, config=EXACT)
class Settled:
    """What became of a call in doubt."""

    outcome: Outcome
    result: Annotated[str, Field(max_length=100_000)] = ""
    digest: Annotated[str, Field(max_length=200)] = ""


@checked(frozen=True, config=EXACT)
class Signature:
    """A word about a version of a plan."""

    version: Annotated[int, Field(ge=1, le=2**31)]
    verdict: Literal["approved", "rejected", "revise"]
    reason: Reason = ""


@checked(frozen=True, config=EXACT)
class Said:
    """Something more that the user says."""

    text: Annotated[str, Field(min_length=1, max_length=100_000)]


@checked(frozen=True, config=EXACT)
class Ended:
    """Why a run is cancelled."""

    reason: Reason = ""


@checked(frozen=True, config=EXACT)
class GoOn:
    """With which limits a run goes on."""

    limits: Tighter = Tighter()


@checked(frozen=True, config=EXACT)
class Wanted:
    """Which runs a list shows, and which part of the list."""

    status: str = ""
    agent: str = ""
    label: Annotated[tuple[str, ...], Field(max_length=8)] = ()
    q: Annotated[str, Field(max_length=200)] = ""
    waiting: bool = False
    since: Annotated[float, Field(allow_inf_nan=False)] | None = None
    until: Annotated[float, Field(allow_inf_nan=False)] | None = None
    parent: str = ""
    cursor: Annotated[str, Field(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    count: bool = False


@checked(frozen=True, config=EXACT)
class Part:
    """A part of a run's records: from `since` on, `limit` of them."""

    since: Count = 0
    limit: Annotated[int, Field(ge=1, le=1_000)] = 200


@checked(frozen=True, config=EXACT)
class PartOfRows:
    """A part of a run, told; `q` leaves only rows that contain it."""

    since: Count = 0
    limit: Annotated[int, Field(ge=1, le=1_000)] = 500
    q: Annotated[str, Field(max_length=200)] = ""


@checked(frozen=True, config=EXACT)
class Moment:
    """As of how many records; all of them without it."""

    at: Count | None = None


@checked(frozen=True, config=EXACT)
class PlanMoment:
    """As of how many records, or which version of the plan."""

    at: Count | None = None
    version: Annotated[int, Field(ge=1, le=2**31)] | None = None


@checked(frozen=True, config=EXACT)
class Form:
    """In which form a run leaves."""

    form: Literal["jsonl", "md", "html"] = "jsonl"


@checked(frozen=True, config=EXACT)
class Two:
    """Two runs."""

    a: Annotated[str, Field(min_length=1)]
    b: Annotated[str, Field(min_length=1)]


@checked(frozen=True, config=EXACT)
class By:
    """What usage is summed by."""

    by: Literal["agent", "day", "model"] = "agent"


@checked(frozen=True, config=EXACT)
class Since:
    """After which change of the store; without it from now on."""

    since: Count | None = None


# What answers hold, where no type of ours has just that shape.


@checked(frozen=True)
class Damage:
    """From which record on a journal is damaged."""

    at: int
    why: str


@checked(frozen=True)
class Runs:
    """A page of runs. `next` is the cursor of the next one; `count` is there where it was asked for."""

    runs: tuple[RunSummary, ...]
    next: str | None
    count: int | Literal["10000+"] | None = None


@checked(frozen=True, config=_LOOSE)
class Shown:
    """A run: the fields of a summary, what waits for a person, and what it waits for itself."""

    run_id: str
    status: str
    waiting: tuple[Question, ...]
    damaged: Damage | None
    waits_for: Literal["", "agent"]


@checked(frozen=True)
class Event:
    """A record."""

    seq: int
    at: float
    hash: str
    event: Mapping[str, Any]


@checked(frozen=True)
class Events:
    """Records of a run. `next` is where to go on, `total` how many there are."""

    events: tuple[Event, ...]
    next: int | None
    total: int
    damaged: Damage | None


@checked(frozen=True)
class Rows:
    """Records of a run, told."""

    rows: tuple[Row, ...]
    next: int | None
    total: int
    status: str
    damaged: Damage | None


@checked(frozen=True)
class Heard:
    """A word in the inbox of a run, and what came of it: `seq` and `event` are there once it was applied."""

    number: int
    outcome: str
    detail: str = ""
    seq: int | None = None
    event: Mapping[str, Any] | None = None
    word: Mapping[str, Any] | None = None


@checked(frozen=True)
class Differs:
    """Where a replay came out differently."""

    at: int
    recorded: str
    replayed: str


@checked(frozen=True)
class Verified:
    """Whether the records of a run are whole, and whether the same comes out of them again."""

    records: int
    chain: str
    replay: Literal["ok"] | Differs | None


@checked(frozen=True)
class ToolTold:
    """A tool of an agent."""

    name: str
    effect: str
    description: str


@checked(frozen=True)
class AgentTold:
    """An agent that is served."""

    name: str
    description: str
    reasoner: str
    models: Mapping[str, str]
    tools: tuple[ToolTold, ...]


@checked(frozen=True)
class Agents:
    """The agents of a server, and how many runs it drives at once."""

    agents: tuple[AgentTold, ...]
    drives: int


@checked(frozen=True)
class Spent:
    """What runs have used, summed by a key."""

    key: str
    runs: int
    requests: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@checked(frozen=True)
class Usages:
    """Sums of what runs have used."""

    by: str
    rows: tuple[Spent, ...]


@checked(frozen=True)
class Me:
    """Whose token this is, what it lets, and which server answers."""

    name: str
    rights: tuple[str, ...]
    tenant: str
    version: str

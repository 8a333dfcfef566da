"""What requests say and answers hold, as types: they check what comes in, and the OpenAPI document is made of them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from surefoot.core.text.json import as_list, as_object, at
from surefoot.server.answers import OWN_LABELS
from surefoot.server.api import Exact
from surefoot.telling.compare import Pair
from surefoot.telling.row import Row
from surefoot.telling.state import Question
from surefoot.types.attachments import Attachment
from surefoot.types.errors import UsageError
from surefoot.types.events import Outcome
from surefoot.types.outcomes import Status
from surefoot.types.plan import ContextDocument, PlanStep, TaskContext
from surefoot.types.ports import RunSummary

MOST = 2**53
"""Whole numbers up to here are the same in every language."""
Count = Annotated[int, Field(ge=0, le=MOST)]
AtLeastOne = Annotated[int, Field(ge=1, le=MOST)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Time = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Short = Annotated[str, Field(max_length=200)]
Long = Annotated[str, Field(max_length=100_000)]
Digest = Annotated[str, Field(min_length=1, max_length=200)]
LabelName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$")]


def _others(labels: dict[str, str]) -> dict[str, str]:
    if any(name.startswith(OWN_LABELS) for name in labels):
        raise ValueError(f"no label may begin with {OWN_LABELS}")
    return labels


Labels = Annotated[dict[LabelName, Short], Field(max_length=32), AfterValidator(_others)]


def _knows(kind: type) -> BeforeValidator:
    """Refuse fields that a type of ours does not have; pydantic would pass over them."""

    def look(value: object) -> object:
        documents = as_list(at(value, "documents")) or () if kind is TaskContext else ()
        for one, of in ((value, kind), *((document, ContextDocument) for document in documents)):
            if unknown := (as_object(one) or {}).keys() - {field.name for field in fields(of)}:
                raise ValueError(f"unknown field {min(unknown)!r}")
        return value

    return BeforeValidator(look)


class Given(Exact):
    """What comes with a task: a `text`, or `data` in base64. It is material, never the user's words."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    text: str = ""
    data: str = ""
    media_type: Short = ""

    def attachment(self) -> Attachment:
        """It as a run keeps it. Raises `UsageError` for a file that cannot be attached."""
        if (self.text and self.data) or not {"text", "data"} & self.model_fields_set:
            raise UsageError(f"{self.name}: give either `text`, or `data` in base64")
        if not self.data:
            return Attachment(self.name, self.text)
        try:
            data = b64decode(self.data, validate=True)
        except ValueError as error:
            raise UsageError(f"{self.name}: data is not valid base64") from error
        return Attachment.from_bytes(data, self.name, media_type=self.media_type)


class Tighter(Exact):
    """Limits of one run; none can be looser than its agent's."""

    max_steps: AtLeastOne | None = None
    max_tokens: AtLeastOne | None = None
    max_cost_usd: Amount | None = None
    max_seconds: Amount | None = None


class Start(Exact):
    """A task for an agent. With `stream` the answer is the stream of the run's events."""

    has_task: ClassVar[bool] = True
    agent: Name
    task: Annotated[str, Field(min_length=1)]
    steps: tuple[Annotated[PlanStep, _knows(PlanStep)], ...] = ()
    attachments: Annotated[tuple[Given, ...], Field(max_length=50)] = ()
    context: Annotated[TaskContext, _knows(TaskContext)] = TaskContext()
    labels: Labels = Field(default_factory=dict)
    limits: Tighter = Tighter()
    stream: bool = False


class RunAgent(Exact):
    """A `RunAgentInput` of AG-UI. The rest of it is checked with the types of that protocol."""

    model_config = ConfigDict(extra="allow", frozen=True)
    has_task: ClassVar[bool] = True
    thread_id: Annotated[Digest, Field(alias="threadId")]
    run_id: Annotated[Digest, Field(alias="runId")]
    messages: tuple[Mapping[str, Any], ...]  # Any: JSON


class Fork(Exact):
    """From which record on a run is to differ, and how."""

    at: AtLeastOne
    agent: Name | None = None
    limits: Tighter = Tighter()
    labels: Labels = Field(default_factory=dict)


class Yes(Exact):
    """Yes to a call, exactly as it was shown."""

    digest: Digest
    note: Long = ""


class No(Exact):
    """No to a call; the model reads the reason."""

    digest: Digest
    reason: Long = ""


class Settled(Exact):
    """What became of a call in doubt."""

    outcome: Outcome
    result: Long = ""
    digest: Short = ""


class Signature(Exact):
    """A word about a version of a plan."""

    version: AtLeastOne
    verdict: Literal["approved", "rejected", "revise"]
    reason: Long = ""


class Said(Exact):
    """Something more that the user says."""

    text: Annotated[str, Field(min_length=1, max_length=100_000)]


class Ended(Exact):
    """Why a run is cancelled."""

    reason: Long = ""


class GoOn(Exact):
    """With which limits a run goes on."""

    limits: Tighter = Tighter()


class Wanted(Exact):
    """Which runs a list shows, and which part of the list."""

    status: Literal[Status, "queued", "set_aside", "damaged", ""] = ""
    agent: Short = ""
    label: Annotated[tuple[Short, ...], Field(max_length=8)] = ()
    q: Short = ""
    waiting: bool = False
    since: Time | None = None
    until: Time | None = None
    parent: Short = ""
    cursor: Short = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    count: bool = False


class Stretch(Exact):
    """A part of a run's records."""

    since: Count = 0
    limit: Annotated[int, Field(ge=1, le=1_000)] = 500


class StretchOfRows(Stretch):
    """A part of a run, told; `q` leaves only rows that contain it."""

    q: Short = ""


class Moment(Exact):
    """As of how many records; all of them without it."""

    at: Count | None = None


class PlanMoment(Moment):
    """As of how many records, or which version of the plan."""

    version: AtLeastOne | None = None


class Form(Exact):
    """In which form a run leaves."""

    form: Literal["jsonl", "md", "html", "otlp"] = "jsonl"


class Two(Exact):
    """Two runs."""

    a: Digest
    b: Digest


class By(Exact):
    """What usage is summed by."""

    by: Literal["agent", "day", "model"] = "agent"


class Since(Exact):
    """After which change of the store; without it from now on."""

    since: Count | None = None


# Answers that no type of ours is just like. For the document, in one line each.
# ruff: noqa: UP013
Json = Mapping[str, Any]  # Any: what JSON holds
Damage = TypedDict("Damage", {"at": int, "why": str})
Runs = TypedDict("Runs", {"runs": list[RunSummary], "next": str | None, "count": int | Literal["10000+"]}, total=False)
Event = TypedDict("Event", {"seq": int, "at": float, "hash": str, "event": Json})
Events = TypedDict("Events", {"events": list[Event], "next": int | None, "total": int, "damaged": Damage | None})
Rows = TypedDict("Rows", {"rows": list[Row], "next": int | None, "total": int, "status": str, "damaged": Damage | None})
Heard = TypedDict("Heard", {"number": int, "outcome": str, "seq": int | None, "event": Json | None}, total=False)
Posted = TypedDict("Posted", {"number": int, "outcome": str, "detail": str, "seq": int | None, "word": Json})
Differs = TypedDict("Differs", {"at": int, "recorded": str, "replayed": str})
Verified = TypedDict("Verified", {"records": int, "chain": str, "replay": Literal["ok"] | Differs | None})
Compared = TypedDict("Compared", {"a": RunSummary, "b": RunSummary, "shared": int, "pairs": list[Pair]})
ToolTold = TypedDict("ToolTold", {"name": str, "effect": str, "description": str})
AgentTold = TypedDict(
    "AgentTold", {"name": str, "description": str, "reasoner": str, "models": dict[str, str], "tools": list[ToolTold]}
)
Agents = TypedDict("Agents", {"agents": list[AgentTold], "drives": int})
Spent = TypedDict("Spent", {
    "key": str, "runs": int, "requests": int, "calls": int, "input_tokens": int, "output_tokens": int,
    "cost_usd": float | None,
})  # fmt: skip
Usages = TypedDict("Usages", {"by": str, "rows": list[Spent]})
Me = TypedDict("Me", {"name": str, "rights": list[str], "tenant": str, "version": str})


@dataclass(frozen=True)
class Shown(RunSummary):
    """A run, what it asks, what is wrong with its journal, and "agent" where nobody here can go on with it."""

    waiting: tuple[Question, ...] = ()
    damaged: Damage | None = None
    waits_for: Literal["", "agent"] = ""

"""What travels between workflow and activities: moves and events in JSON, and large payloads as bytes of the journal.

Source: spec/scale.md, sections 6.1, 6.3 and 6.4.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any, Literal, get_args

from temporalio import converter
from temporalio.api.common.v1 import Payload

from surefoot.core.plan.child import owner_of
from surefoot.core.state.state import Call, State
from surefoot.core.text import json_text
from surefoot.journal.codec import decode, decode_catalogue, encode
from surefoot.types.errors import SurefootError
from surefoot.types.events import VERSION, Event
from surefoot.types.moves import Act, Probe, Within, WorldMove
from surefoot.types.ports import Durability, JournalStore

WORKFLOW = "surefoot.run"
_PREFIX = "surefoot/"

MOST_BYTES = 65_536
"""What is larger travels packed, and as bytes of the journal where that is still too large."""

_PACKED, _KEPT = b"surefoot/packed", b"surefoot/blob"


class Diverged(SurefootError):
    """A core decides otherwise than the one that a workflow's history is of. `surefoot temporal adopt RUN` goes on."""


Size = Literal["move", "run"]
"""What an activity is: one move, or a whole stretch of a run."""


def workflow_id(run_id: str) -> str:
    """What Temporal calls the workflow of a run."""
    return _PREFIX + run_id


def run_of(name: str) -> str:
    """The run of a workflow."""
    return name.removeprefix(_PREFIX)


@dataclass(frozen=True, slots=True)
class Held:
    """A run, and by which claim a workflow has it."""

    run_id: str
    agent: str
    fence: int


@dataclass(frozen=True, slots=True)
class Given:
    """What a workflow starts with. It begins anew once its history has `most_events`, and at Temporal's suggestion."""

    held: Held
    size: str
    most_events: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Records in a row: `place` is behind the last of them, its hash in hex, `at` its time. `tools` are catalogues."""

    bodies: Sequence[str] = ()
    seq: int = 0
    hash: str = ""
    at: float = 0.0
    has_more: bool = False
    tools: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Batch:
    """Events to be appended at a place, at a time."""

    held: Held
    bodies: Sequence[str]
    seq: int
    hash: str
    at: float
    durability: Durability


@dataclass(frozen=True, slots=True)
class Asked:
    """A move of a run, to be made from the state that its first `seq` records tell of."""

    held: Held
    seq: int
    move: dict[str, Any]  # Any: as `encode_move` gives it


@dataclass(frozen=True, slots=True)
class Made:
    """What came of the move of that digest, and when it ended."""

    bodies: Sequence[str]
    at: float
    digest: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says to a call that waits, by whose name, and the digest of what they were shown ("": as it is)."""

    call_id: str
    by: str
    reason: str = ""
    digest: str = ""


_MOVES = {kind.__name__: kind for kind in get_args(WorldMove)}


def encode_move(move: WorldMove) -> dict[str, Any]:  # Any: JSON
    """A move in JSON: the name of its kind as `type`, and its fields."""
    told = {one.name: getattr(move, one.name) for one in fields(move)}
    if isinstance(move, Within):
        told["move"] = encode_move(move.move)
    return {"type": type(move).__name__, **told}


def decode_move(told: Mapping[str, Any]) -> WorldMove:
    """The move of such JSON. Raises `ValueError` for what is none."""
    given = dict(told)
    try:
        kind = _MOVES[given.pop("type")]
        if kind is Within:
            given["move"] = decode_move(given["move"])
        return kind(**given)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{told!r} is not a move: {error}") from error


def digest_of_move(move: WorldMove) -> str:
    """What a result says whose it is: the first 16 hex digits of the SHA-256 of the move."""
    return sha256(json_text(encode_move(move), sort_keys=True).encode(errors="surrogatepass")).hexdigest()[:16]


def call_of(move: WorldMove, state: State) -> tuple[State, Call | None]:
    """The call that a move makes or asks about, and whose it is: of the run, or of one of its steps."""
    inner = move.move if isinstance(move, Within) else move
    if not isinstance(inner, Act | Probe):
        return state, None
    owner = owner_of(state, inner.call_id).state
    return owner, owner.call(inner.call_id)


def piece_of(events: Sequence[Event], *, seq: int, hash: str, at: float, has_more: bool = False) -> Piece:  # noqa: A002
    """Records as they travel."""
    written = [encode(event) for event in events]
    tools = {blob[0]: blob[1].decode() for _, blob in written if blob is not None}
    return Piece([body.decode() for body, _ in written], seq, hash, at, has_more, tools)


def events_in(bodies: Sequence[str], tools: Mapping[str, str] | None = None) -> list[Event]:
    """The events of bodies. Raises `ValueError`."""
    known = tools or {}
    return [
        decode(body.encode(), VERSION, lambda digest, form: decode_catalogue(known[digest].encode(), form))
        for body in bodies
    ]


class Shelf(converter.PayloadCodec, converter.WithSerializationContext):
    """Keeps large payloads as bytes of the journal, for the run whose workflow they are of."""

    def __init__(self, store: JournalStore, run_id: str = "") -> None:
        self._store, self._run_id = store, run_id

    def with_context(self, context: converter.SerializationContext) -> Shelf:
        of_workflow = (converter.WorkflowSerializationContext, converter.ActivitySerializationContext)
        if isinstance(context, of_workflow) and context.workflow_id:
            return Shelf(self._store, run_of(context.workflow_id))
        return self

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        sent = list(payloads)
        for at, one in enumerate(payloads):
            if one.ByteSize() > MOST_BYTES:
                encoding, data = _PACKED, zlib.compress(one.SerializeToString(), 1)
                if len(data) > MOST_BYTES:
                    encoding, data = _KEPT, (await self._store.put_blob(self._run_id, data)).encode()
                sent[at] = Payload(metadata={"encoding": encoding}, data=data)
        return sent

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        found = list(payloads)
        for at, one in enumerate(payloads):
            encoding, data = one.metadata.get("encoding"), one.data
            if encoding == _KEPT:
                data = await self._store.get_blob(data.decode())
            if encoding in (_PACKED, _KEPT):
                found[at] = Payload.FromString(zlib.decompress(data))
        return found

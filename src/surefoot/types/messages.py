"""What goes to a model and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Literal

from surefoot.types.attachments import Attachment
from surefoot.types.dataclass import dataclass, field, replace
from surefoot.types.settings import Settings, amount, mapping, or_none, seconds, setting, share, text, texts, whole
from surefoot.types.tools import Catalogue
from surefoot.types.usage import Usage

Role = Literal["system", "user", "assistant", "tool"]
CallMode = Literal["native", "schema", "text"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "unknown"]
_files = attrgetter("files")
Traits = Mapping[str, str]
"""What is known about one (wire, base URL, model), by trait name. Source: spec/react.md, section 2."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """One call as a wire delivers it. `arguments` is the text as received, or an object where a server sends one."""

    id: str
    name: str
    arguments: str | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message of a conversation, sent or received.

    `call_id` pairs a message of role "tool" with its call; `name` is then the tool. A reply also carries why it ended,
    what it used, the model as reported and how many attempts it took; `mended` says that some of its text was not valid
    Unicode and was replaced. `reasoning` is kept apart from `content` and is never parsed. `opaque` holds what only the
    model that wrote it can read (signed or encrypted reasoning): each item names in `origin` the wire and the model,
    and goes back to that model unchanged and to no other; it is never shown or parsed. `files` are those that the
    message carries; where a model does not take them, what `content` says of each has to do. The encoded form for a
    wire is kept beside the value, since a message is sent again with every later request (`encoded`).
    """

    role: Role
    content: str = ""
    calls: tuple[NativeCall, ...] = ()
    call_id: str = ""
    name: str = ""
    reasoning: str = ""
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    model: str = ""
    attempts: int = 1
    id: str = ""
    opaque: tuple[Mapping[str, object], ...] = ()
    mended: bool = False
    files: tuple[Attachment, ...] = ()
    _wire: tuple[str | None, bytes] = field(default=(None, b""), init=False, repr=False, compare=False)

    @staticmethod
    def encoded(messages: Iterable[ModelMessage], wire: str, encode: Callable[[ModelMessage], bytes]) -> list[bytes]:
        """Messages as bytes for one wire, each made once. `wire` names the form: the same name, the same bytes."""
        said: list[bytes] = []
        for one in messages:
            form, made = one._wire  # noqa: SLF001  # of its own class, and read once, since another thread may set it
            if form != wire:
                # copied: an encoder's result may sit in a block of 4 KB (orjson 3.13), and these are kept for long
                made = bytes(memoryview(encode(one)))
                object.__setattr__(one, "_wire", (wire, made))
            said.append(made)
        return said


@dataclass(frozen=True, slots=True)
class ModelSettings(Settings):
    """What a request asks of a model. `None` is not sent; `0` is a value and is sent.

    Times in seconds, those of `None` as `patience` has them. Attempts that get no sign of life take together no longer
    than one may, or than one may by default. `price_in` and `price_out`: US dollars a million tokens, where the reply
    tells no cost. `extra` goes into the request body as it is. Raises `ConfigError` for what a field cannot be.
    """

    temperature: float | None = setting(None, or_none(amount, "its default"), "how freely it chooses its words")
    top_p: float | None = setting(None, or_none(share, "its default"), "share of the likeliest words to choose from")
    max_output_tokens: int | None = setting(None, or_none(whole(0), "its default"), "tokens of one reply")
    seed: int | None = setting(None, or_none(whole(-(2**63), 2**63 - 1), "its default"), "for replies that repeat")
    reasoning_effort: str | None = setting(None, or_none(text, "its default"), "how much it reasons")
    stop: tuple[str, ...] = setting((), texts, "texts that end a reply")
    connect_timeout_s: float = setting(10.0, seconds, "for a connection")
    first_token_timeout_s: float | None = setting(None, or_none(seconds, "`patience`"), "for the first token")
    between_tokens_timeout_s: float = setting(60.0, seconds, "from one token to the next")
    request_timeout_s: float | None = setting(None, or_none(seconds, "`patience`"), "for a whole reply")
    attempts: int = setting(3, whole(1), "tries of one request")
    price_in: float | None = setting(None, or_none(amount, "not known"), "US dollars a million input tokens")
    price_out: float | None = setting(None, or_none(amount, "not known"), "US dollars a million output tokens")
    extra: Mapping[str, object] = setting(dict[str, object], mapping, "other fields of the body")

    def priced(self, usage: Usage) -> Usage:
        """The usage, with its cost by these prices where it tells none."""
        if self.price_in is self.price_out is None or usage.cost_usd is not None or not usage.total_tokens:
            return usage
        cost = usage.input_tokens * (self.price_in or 0.0) + usage.output_tokens * (self.price_out or 0.0)
        return replace(usage, cost_usd=cost / 1_000_000)

    def patience(self, *, near: bool = False) -> Patience:
        """How long a reply is waited for. By default 2 minutes for the first token and 10 for a whole reply.

        `near`: of a model on this machine 10 and 30 minutes, since a small machine takes long to read a prompt.
        """
        first_s, whole_s = (600.0, 1800.0) if near else (120.0, 600.0)
        return Patience(
            first_s if self.first_token_timeout_s is None else self.first_token_timeout_s,
            whole_s if self.request_timeout_s is None else self.request_timeout_s,
        )


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a model may take, in seconds: until its first token, where it streams; and for a whole reply."""

    first_token_s: float
    whole_s: float

    def silence_s(self, *, stream: bool) -> float:
        """How long such a request may go without any sign of life."""
        return min(self.first_token_s, self.whole_s) if stream else self.whole_s


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: everything that a wire needs, and nothing that it must remember.

    In mode "native" the `tools` go into the wire's own field; in "schema" the reply is held to `schema`; in "text" the
    system message already describes the tools, and `stop` ends a step. `deadline_s` is what is left of the run's time.
    `bare`: no tool is declared, not even those of earlier calls; a wire that takes no history with calls then shows
    them as texts.
    """

    system: str
    messages: tuple[ModelMessage, ...]
    mode: CallMode = "native"
    tools: Catalogue = Catalogue()
    schema: Mapping[str, object] | None = None
    stop: tuple[str, ...] = ()
    settings: ModelSettings = ModelSettings()
    traits: Traits = field(default_factory=dict[str, str])
    stream: bool = False
    deadline_s: float | None = None
    bare: bool = False
    files: tuple[Attachment, ...] = field(default=(), init=False, repr=False, compare=False)
    """The files of all its messages."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(chain.from_iterable(map(_files, self.messages))))


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of visible text, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's own reasoning, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPreview:
    """A native call has begun to arrive; its arguments are still to come, and nothing runs from them."""

    index: int
    name: str


REREAD = "the reply, read as a whole, says something else"  # why what was shown of a reply is taken back


@dataclass(frozen=True, slots=True)
class Reset:
    """Forget what was shown of the reply: it was interrupted and starts again, or says something else once complete."""

    reason: str


ModelSignal = TextDelta | ReasoningDelta | CallPreview | Reset  # what streams by of a reply and is never journaled


@dataclass(frozen=True, slots=True)
class TextHeld:
    """So many characters of a reply have come that may still become a call, so that they are not shown."""

    chars: int


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a call is, as its tool tells it: `done` of `total`, in the tool's own units, where it knows them."""

    call_id: str
    text: str
    done: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True)
class Inside:
    """What happens in the run of an agent that a call has started: `item` is an event of it, or a signal."""

    call_id: str
    run_id: str
    item: object


Signal = ModelSignal | TextHeld | ToolProgress | Inside
"""All that is shown to whoever watches a run and is never journaled."""

Emit = Callable[[ModelSignal], None]


def models_line(models: Mapping[str, str]) -> str:
    """Models by role in one line: the name, or "ROLE NAME" of each where there are several."""
    if len(models) == 1:
        return next(iter(models.values()))
    return " · ".join(f"{role} {model}" for role, model in models.items())

"""Every error that surefoot raises.

    SurefootError
    ├── UsageError            a mistake of the developer, raised before a run starts
    │   ├── ConfigError       a configuration value that cannot be meant
    │   ├── AnswerLate        a person's yes came after the time limit of its question
    │   ├── RunUnknown        no run of that id is in this journal
    │   └── RunExists         a run of that id is there already
    ├── ModelError            a model gave no usable reply
    │   ├── ModelTimeout      … in time
    │   ├── ModelUnreachable  … because its server could not be reached, or is overloaded
    │   ├── ModelRefused      … because its server or its policy said no
    │   └── TraitRefused      … because one part of the request is not to its liking; send it without
    └── JournalError          what happened could not be read or written
        ├── JournalCorrupt    a record is torn or was altered
        ├── JournalTooNew     a later version of surefoot wrote it
        ├── JournalUnavailable  its server, disk or file cannot be used now
        └── RunBusy           another process is driving this run
            └── LeaseLost     … since this one was cut off for too long

Failures of the world that a model can read (a tool that fails, a reply that cannot be parsed, a limit that is
reached) are values, never exceptions. A message says what happened, to which thing, and what to do next.
"""

from typing import Literal

from surefoot.types.usage import Usage

ModelFailureKind = Literal[
    "auth", "rate_limited", "timeout", "unavailable", "bad_request", "context_overflow", "refused", "cancelled"
]


def extra_needed(extra: str) -> str:
    """What to do where the packages of an optional part are missing, as the end of a message."""
    return f"install the extra {extra}: pip install 'surefoot[{extra}]' (in a checkout: pip install '.[{extra}]')"


class SurefootError(Exception):
    """The base class: catch this to catch everything that surefoot raises on purpose."""


class UsageError(SurefootError):
    """surefoot was called in a way that cannot work; nothing was started."""


_MOST_SHOWN = 200  # characters of a wrong value in a message


class ConfigError(UsageError):
    """One configuration value is invalid. `field` and `value` name it; a missing value is ""."""

    def __init__(self, field: str, value: object, message: str) -> None:
        given = repr(value)
        shown = given if len(given) <= _MOST_SHOWN else f"{given[:_MOST_SHOWN]}…"
        super().__init__(f"{field}: {message}" if value == "" else f"{field}={shown}: {message}")
        self.field = field
        self.value = value
        self.message = message


class AnswerLate(UsageError):
    """A yes came after `GuardConfig.approval_timeout_s`, and is recorded as a no. The run can be resumed."""


class RunUnknown(UsageError):
    """No run of that id is in this journal."""


class RunExists(UsageError):
    """A run of that id is in this journal already."""


class ModelError(SurefootError):
    """A model gave no usable reply. `kind` is a stable word; `retry_after_s`: what the server asked for.

    `attempts`, `usage` and `waited_s` (seconds, with the waits between) are of all tries; whoever tried sets them.
    `endpoint` is who was asked where, `status` that of HTTP: 0 when no answer came, None when nobody said. As a text
    the error tells all of these that its message does not name.
    """

    kind: ModelFailureKind = "unavailable"
    retry_after_s: float | None = None
    attempts: int = 1
    usage: Usage = Usage()
    waited_s: float | None = None
    endpoint: str = ""
    status: int | None = None

    def __init__(
        self, message: str, *, kind: ModelFailureKind | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        said = super().__str__()
        told = [self.endpoint] if any(part not in said for part in self.endpoint.split(" at ")) else []
        if self.status is not None and f"HTTP {self.status}" not in said:
            told.append(f"HTTP {self.status}" if self.status else "no answer")
        if self.waited_s is not None:
            told.append(f"{self.attempts} attempt{'' if self.attempts == 1 else 's'} in {self.waited_s:.1f} s")
        return f"{said} ({', '.join(told)})" if told else said


class ModelTimeout(ModelError):
    """No reply within the time allowed. `stalled`: a part of it had come."""

    kind = "timeout"
    stalled: bool = False


class ModelUnreachable(ModelError):
    """The server could not be reached, broke off, or is overloaded; the same request may work later."""

    kind = "unavailable"


class ModelRefused(ModelError):
    """The server answered, and will answer the same again: bad key, bad request, content filter, context too long."""

    kind = "bad_request"


class TraitRefused(ModelError):
    """The endpoint refuses one part of the request; what was learnt is `trait` = `value`, and `evidence` its words."""

    kind = "bad_request"

    def __init__(self, trait: str, value: str, evidence: str) -> None:
        super().__init__(f"the endpoint refuses a part of the request: {trait} is {value!r} ({evidence})")
        self.trait = trait
        self.value = value
        self.evidence = evidence


class JournalError(SurefootError):
    """The journal could not be read or written."""


class JournalCorrupt(JournalError):
    """A record is torn or was altered. `run_id` and `record` (0 is the first) name it; what precedes it is readable."""

    def __init__(self, run_id: str, record: int, message: str) -> None:
        super().__init__(f"run {run_id}, record {record}: {message}; what precedes it can be read")
        self.run_id = run_id
        self.record = record


class JournalTooNew(JournalError):
    """A later version of surefoot wrote this journal; upgrade surefoot to read it."""


class JournalUnavailable(JournalError):
    """The server, disk or file of the journal cannot be used now; no run is to blame, and it may work again later."""


class RunBusy(JournalError):
    """Another process (or another task of this one) is driving this run right now."""


class LeaseLost(RunBusy):
    """This process no longer drives the run: another has taken it up, it was deleted, or records were lost."""


def overtaken(run_id: str) -> LeaseLost:
    """What to raise where a run is another's by now."""
    return LeaseLost(f"run {run_id} has gone on without this process: somebody else drives it; leave it to them")

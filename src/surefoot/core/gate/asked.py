"""A call as the policies see it, and what one of them may say against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from surefoot.core.gate.known import Known
from surefoot.core.gate.limits import Started
from surefoot.core.gate.origins import traced
from surefoot.core.gate.sinks import Aimed
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import Evidence
from surefoot.types.tools import Effect, ToolSpec


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as the policies see it."""

    known: Known
    spec: ToolSpec
    arguments: Mapping[str, object]
    aim: Aimed
    digest: str
    started: Sequence[Started]

    @property
    def values(self) -> tuple[Evidence, ...]:
        """Every value of the call for a person to read: each with the result that holds it, if any does."""
        return tuple(traced(self.known, e) for e in self.aim.evidence)


@dataclass(frozen=True, slots=True)
class Word:
    """What one policy says against a call: its rule, how strict, what the model and the person read, what is meant.

    A question that `is_firm` is one that a person has ordered to be asked: no standing rule answers it.
    """

    rule: str
    verdict: Literal["ask", "deny"]
    for_model: str
    for_person: str
    evidence: tuple[Evidence, ...] = ()
    is_firm: bool = False


Policy = Callable[[Asked], Sequence[Word]]


def classes_of(aim: Aimed) -> frozenset[Effect | None]:
    """The effects that a call stands for."""
    return aim.effect.classes(to_somebody=any(e.role == "destination" for e in aim.evidence))

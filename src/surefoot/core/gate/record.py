"""What the gate keeps of a run: what is known, what was started, what a person refused. Source: spec/guard.md, 4.11."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from surefoot.core.gate.effects import guess
from surefoot.core.gate.known import Known
from surefoot.core.gate.limits import Started
from surefoot.core.gate.roles import leaves, role_of
from surefoot.types.guard_events import JudgementMade
from surefoot.types.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class GateRecord:
    """The gate's part of a state. `refused` are the digests that a person said no to, `asks` counts the questions.

    `nonce` is in the marks around foreign text. `hidden` are the calls whose results hold characters that do not show,
    with their number, which is to be put on record next. `masks` are the passages that a model has named in a result,
    by its content; `judgements` the words of a model on calls. `is_read` says that a model was asked about the words.
    """

    known: Known
    started: tuple[Started, ...] = ()
    refused: frozenset[str] = frozenset()
    asks: int = 0
    nonce: str = ""
    hidden: tuple[tuple[str, int], ...] = ()
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    judgements: Mapping[str, JudgementMade] = field(default_factory=dict[str, JudgementMade])
    is_read: bool = False

    def begun(self, call_id: str, spec: ToolSpec, arguments: Mapping[str, object], digest: str) -> Started:
        """A call that begins, or may: what it is for, and which amounts it moves."""
        roles = [(role_of(path, v, spec), v) for path, v in leaves(arguments, spec)]
        amounts = tuple(str(v) for role, v in roles if role == "amount")
        is_to_somebody = any(role == "destination" for role, _ in roles)
        effects = guess(spec, self.known.config.guess).classes(to_somebody=is_to_somebody)
        return Started(call_id, spec.name, effects, digest, amounts, is_open=True)

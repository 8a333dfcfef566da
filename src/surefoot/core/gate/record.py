"""What the gate keeps of a run: what is known, what was started, what a person refused. Source: spec/guard.md, 4.11."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.core.gate.choosing import Choosing
from surefoot.core.gate.effects import guess
from surefoot.core.gate.known import Known
from surefoot.core.gate.limits import Started, moved_by
from surefoot.core.gate.money import sums_of
from surefoot.core.gate.question import refused_before
from surefoot.core.gate.roles import leaves, name_of, role_of
from surefoot.core.gate.sources import Shown, set_of
from surefoot.core.gate.values import norm_of
from surefoot.types.dataclass import dataclass, field, replace
from surefoot.types.guard import Grounds, Role
from surefoot.types.guard_events import JudgementMade
from surefoot.types.tools import ToolSpec

BY_MODEL = "model-"
"""How the ids of constraints begin that a model has read in the words."""


@dataclass(frozen=True, slots=True)
class GateRecord:
    """The gate's part of a state.

    `refused` are the digests that a person said no to, `refused_values` the destinations and objects of those calls.
    `shown` is what each question showed as a set, by its call.

    `nonce` is in the marks around foreign text. `hidden` are the calls whose results hold characters that do not show,
    with their number, which is to be put on record next. `masks` are the passages that a model has named in a result,
    by its content; `judgements` the words of a model on calls. `is_read` says that a model was asked about the words.
    `choosing` is how far the choice between ways to go on has come, by attempt of a step (`core/running.py: place_of`).
    """

    known: Known
    started: tuple[Started, ...] = ()
    refused: frozenset[str] = frozenset()
    refused_values: frozenset[tuple[Role, str]] = frozenset()
    shown: Mapping[str, Shown] = field(default_factory=dict[str, Shown])
    nonce: str = ""
    hidden: tuple[tuple[str, int], ...] = ()
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    judgements: Mapping[str, JudgementMade] = field(default_factory=dict[str, JudgementMade])
    is_read: bool = False
    choosing: Mapping[str, Choosing] = field(default_factory=dict[str, Choosing])

    def begun(self, call_id: str, spec: ToolSpec, arguments: Mapping[str, object], digest: str) -> Started:
        """A call that begins, or may: what it is for, and which amounts it moves."""
        values: list[tuple[str, Role, object]] = [
            (name_of(path), role_of(path, v, spec), v) for path, v in leaves(arguments, spec)
        ]
        amounts = sums_of(values)
        is_to_somebody = any(role == "destination" for _, role, _ in values)
        effects = guess(spec, self.known.config.guess).classes(to_somebody=is_to_somebody)
        return Started(call_id, spec.name, effects, digest, amounts, is_open=True, moved=moved_by(spec, arguments))

    def with_no(self, spec: ToolSpec, arguments: Mapping[str, object]) -> GateRecord:
        """The record once a person has said no to a call: its destinations and objects are nobody's yes any more."""
        values = {one for one in moved_by(spec, arguments) if one[0] != "amount"}
        known = replace(self.known, endorsed=self.known.endorsed - values)
        return replace(self, known=known, refused_values=self.refused_values | values)

    def asking(self, spec: ToolSpec, arguments: Mapping[str, object], grounds: Grounds) -> Grounds:
        """What a question rests on: with the set that a yes is for, and a word on each value that had a no before.

        What had a no is never in such a set.
        """
        no = self.refused_values
        shown = tuple(one for one in set_of(self.known, spec, arguments) if (one[0], one[2]) not in no)
        evidence = tuple(refused_before(e) if (e.role, norm_of(e.value)) in no else e for e in grounds.evidence)
        return replace(grounds, evidence=evidence, shown=shown)

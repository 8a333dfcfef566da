"""What the gate knows of a run when it judges a call: the user's words, and what every result so far holds.

A `Known` grows with the run: each ended call adds a `Source`, and what was derived of the earlier ones stays. It holds
values of one run only. Source: spec/guard.md, sections 4.6 and 4.11.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.core.gate.index import NO_FIELDS, Atom, Fields, ValueIndex
from surefoot.core.gate.values import dates_of, hard_tokens, norm_of
from surefoot.types.dataclass import dataclass, field
from surefoot.types.guard import Entity, GuardConfig, IntentAnchor, Role
from surefoot.types.rules import StepKind
from surefoot.types.tools import ToolSpec

LEAST_NAMING = 3


@dataclass(frozen=True, slots=True)
class Words:
    """The user's words, ready to be compared with. `plain` is their text without addresses, links and accounts."""

    anchor: IntentAnchor
    norms: frozenset[str]
    names: tuple[str, ...]
    locators: frozenset[str]
    plain: str

    @classmethod
    def of(cls, anchor: IntentAnchor) -> Words:
        """The words of an anchor; made once for it."""
        entities = anchor.entities
        texts = {entity_norm(e) for e in entities}
        return cls(
            anchor,
            frozenset(texts),
            tuple(sorted({n[5:] for n in texts if n.startswith("text:") and len(n) >= LEAST_NAMING + 5})),
            frozenset(entity_norm(e) for e in entities if e.kind != "name"),
            _without_tokens(anchor.text),
        )


def _without_tokens(text: str) -> str:
    """A text in whose hard tokens nothing is found: a piece of an address is no address."""
    parts: list[str] = []
    at = 0
    for token in hard_tokens(text):
        if token.kind in ("email", "url", "account", "phone"):
            parts += (text[at : token.start], "\n")
            at = token.end
    return "".join((*parts, text[at:]))


def entity_norm(entity: Entity) -> str:
    """An entity in the form in which leaves are compared."""
    if entity.kind in ("quoted", "file", "name"):
        return "text:" + norm_of(entity.text, "text")[5:]
    return norm_of(entity.text)


@dataclass(frozen=True, slots=True)
class Source:
    """A result of this run.

    `named` are the records that the user's words name, each with the names; `is_located` says that the words say where
    it is. `opened` are the records that they anchor.
    """

    call_id: str
    name: str
    index: ValueIndex
    spec: ToolSpec | None = None
    named: tuple[tuple[int, frozenset[str]], ...] = ()
    opened: frozenset[int] = frozenset()
    is_located: bool = False

    @property
    def is_named(self) -> bool:
        """Whether the words name the result, or a record of it."""
        return bool(self.named) or self.is_located

    @property
    def may_open(self) -> bool:
        """Whether any field of it is good."""
        return bool(self.opened) or (self.spec is not None and bool(self.spec.trusted_fields))

    def atom(self, norm: str) -> tuple[Atom, bool]:
        """The first field with a value that one has, and whether it stands in an anchored record; such a one first."""
        at = self.index.atoms[norm]
        best = next((number for number in at if number in self.opened), at[0])
        found = next(atom for atom in self.index.records[best].atoms if atom.norm == norm)
        return found, best in self.opened


@dataclass(frozen=True, slots=True)
class Known:
    """What is known when a call is judged.

    `fields` finds the results that hold a value as a field, `doubled` are the names under which several things were
    read. `today` is the day on which the run was begun, in ISO form or "". `degraded` are the calls whose results a
    model should have read for orders in them, and has not. `accepted` are the pins of foreign tools of which a person
    has approved a call in this run, `doubted` the tools that look like others, with the reason that a person reads.
    `step_kind` is what the running step of a plan is; a run without a plan is one step.
    """

    words: Words
    config: GuardConfig
    sources: tuple[Source, ...] = ()
    fields: Fields = NO_FIELDS
    doubled: frozenset[str] = frozenset()
    endorsed: frozenset[tuple[Role, str]] = frozenset()
    today: str = ""
    step_kind: StepKind = "tool"
    degraded: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()
    doubted: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def has_read_what_is_named(self) -> bool:
        """Whether a source or a record that the words name was read."""
        return any(source.is_named for source in self.sources)

    def days(self) -> tuple[tuple[int, int, int], ...]:
        """The days that a relative date may be counted from: that of the run, and results that are nothing but one."""
        alone = (only_day(source.index) for source in self.sources)
        return (*dates_of(self.today), *(day for day in alone if day is not None))


def only_day(index: ValueIndex) -> tuple[int, int, int] | None:
    """The day, of a result that is nothing but one date."""
    if len(index.records) == 1 and len(index.records[0].atoms) == 1:
        text = index.records[0].atoms[0].text
    elif not index.records and len(index.text) <= _LONGEST_DATE:
        text = index.text
    else:
        return None
    days = dates_of(text)
    return days[0] if len(days) == 1 and len(text) <= _LONGEST_DATE else None


_LONGEST_DATE = 32

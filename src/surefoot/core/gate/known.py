"""What the gate knows of a run when it judges a call: the user's words, and what every result so far holds.

A `Known` grows with the run: each ended call adds a `Source`, and what was derived of the earlier ones stays. It holds
values of one run only. Source: spec/guard.md, sections 4.6 and 4.11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from surefoot.core.gate.forms import holds
from surefoot.core.gate.index import Atom, Record, ValueIndex
from surefoot.core.gate.values import dates_of, hard_tokens, norm_of
from surefoot.types.guard import Entity, GuardConfig, IntentAnchor, Role
from surefoot.types.rules import StepKind
from surefoot.types.tools import ToolSpec

LEAST_NAMING = 3
LEAST_BEGINNING = 4
LEAST_WHOLE = 6


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
    """A result of this run. `opened` are the records that the user's words anchor, `is_named` that they name one."""

    call_id: str
    name: str
    index: ValueIndex
    spec: ToolSpec | None = None
    opened: frozenset[int] = frozenset()
    is_named: bool = False

    def atom(self, norm: str) -> tuple[Atom, bool] | None:
        """The first field with that value, and whether it stands in an anchored record; such a one comes first."""
        at = self.index.atoms.get(norm)
        if not at:
            return None
        best = next((number for number in at if number in self.opened), at[0])
        found = next(atom for atom in self.index.records[best].atoms if atom.norm == norm)
        return found, best in self.opened


@dataclass(frozen=True, slots=True)
class Known:
    """What is known when a call is judged. `today` is the day on which the run was begun, in ISO form or "".

    `degraded` are the calls whose results a model should have read for orders in them, and has not. `accepted` are the
    pins of foreign tools of which a person has approved a call in this run, `doubted` the tools that look like others,
    with the reason that a person reads. `step_kind` is what the running step of a plan is; a run without a plan is one
    step. `user` is whose run it is.
    """

    words: Words
    config: GuardConfig
    sources: tuple[Source, ...] = ()
    endorsed: frozenset[tuple[Role, str]] = frozenset()
    today: str = ""
    step_kind: StepKind = "tool"
    user: str = ""
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


def opened_by(words: Words, index: ValueIndex, *, is_located: bool) -> tuple[frozenset[int], bool]:
    """The records that the words anchor, and whether they name any.

    Exactly one named record is anchored; two or more, even with equal values, are none. A result that is one record is
    anchored too when all arguments of its fetch were good and one of them says where it is (`is_located`).
    """
    named = [number for number, record in enumerate(index.records) if is_named(words, record)]
    opened = set(named) if len(named) == 1 else set[int]()
    if index.is_one and is_located and index.records:
        opened.add(0)
    return frozenset(opened), bool(named) or is_located


def is_named(words: Words, record: Record) -> bool:
    """Whether one of the record's texts is, begins with, or stands whole in what the user named."""
    for atom in record.atoms:
        if not atom.is_text or len(atom.text) < LEAST_NAMING:
            continue
        if atom.norm in words.norms:
            return True
        if not atom.norm.startswith("text:"):
            continue
        text = atom.norm[5:]
        if any(len(name) >= LEAST_BEGINNING and _begins(text, name) for name in words.names):
            return True
        if len(text) >= LEAST_WHOLE and " " in text and holds(words.anchor.text, text):
            return True
    return False


def _begins(text: str, name: str) -> bool:
    return text.startswith(name) and (len(text) == len(name) or not text[len(name)].isalnum())

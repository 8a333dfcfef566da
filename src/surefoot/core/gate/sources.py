"""What the gate knows of a run when it judges a call: the user's words, and what every result so far holds.

The words anchor a record of a result if it is the only one that they name, as long as its name is one thing's. A text
that anybody may have written about a thing names nothing. Records of several results that bear one name are the same
thing only as far as nothing in them contradicts it. Source: spec/guard.md, sections 4.6 and 4.11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from surefoot.core.gate.effects import guess, is_called_directory
from surefoot.core.gate.roles import Leaf, is_id, role_of_name
from surefoot.core.gate.slots import LEAST_NAMING, Use, Words
from surefoot.core.text.look import holds
from surefoot.core.text.records import Atom, Fields, Record, ValueIndex
from surefoot.core.text.words import Day, dates_of, stems_of, stems_of_name
from surefoot.types.dataclass import dataclass, field, replace
from surefoot.types.guard import GuardConfig
from surefoot.types.rules import Role, StepKind
from surefoot.types.tools import ToolSpec

LEAST_BEGINNING = 4
MOST_NAMED = 60  # records of one result that are compared with others; the names of more stand for several things
LEAST_WHOLE = 6
_LONGEST_DATE = 32
_ADDRESSES = ("email:", "url:", "digits:")


@dataclass(frozen=True, slots=True)
class Source:
    """A result of this run. `named` are the records that the user's words name, with the names, `opened` the anchored.

    `located` is the value of the words that says where it is, in normal form.
    """

    call_id: str
    name: str
    index: ValueIndex
    spec: ToolSpec
    named: tuple[tuple[int, frozenset[str]], ...] = ()
    opened: frozenset[int] = frozenset()
    located: str = ""

    @property
    def is_named(self) -> bool:
        """Whether the words name the result, or a record of it."""
        return bool(self.named or self.located)

    @property
    def is_directory(self) -> bool:
        """Whether it looks people or accounts up: as declared, else an own function called so that gives no texts."""
        if self.spec.directory is not None:
            return self.spec.directory
        if self.spec.is_foreign or not is_called_directory(self.spec):
            return False
        fields = {last_field(atom.field) for record in self.index.records for atom in record.atoms}
        return stems_of("names.message_fields").isdisjoint(stem for name in fields for stem in stems_of_name(name))

    def voucher(self, words: Words, leaf: Leaf, use: Use) -> Atom | None:
        """The field of an anchored record from which a call with an effect may take a value (section 9, rows 1 and 2).

        It says where something goes if it is one of a directory, and of the recipient of the words; on what to act, by
        its own id or path, if the words give that thing to this effect. Where the words say where it is, delegate to it
        and name nothing else, it says so too, and how much.
        """
        for number in self.opened.intersection(self.index.atoms[leaf.norm]):
            record = self.index.records[number]
            atom = next(atom for atom in record.atoms if atom.norm == leaf.norm)
            names = _identified(record, self.spec, dict(self.named).get(number, frozenset()))
            is_meant = any(
                words.place(replace(leaf, norm=name), use, "thing" if leaf.role == "object" else "to")
                in ("exact", "yes")
                for name in names
            )
            if leaf.role == "destination" and self.is_directory:
                is_good = is_meant and _is_single(record, atom)
            elif leaf.role == "object" and is_meant:
                is_good = not stems_of_name(last_field(atom.field)).isdisjoint(stems_of("names.locator"))
            else:
                is_good = leaf.role in ("destination", "amount") and self._is_delegated(words, leaf, use, record, atom)
            if is_good:
                return atom
        return None

    def _is_delegated(self, words: Words, leaf: Leaf, use: Use, record: Record, atom: Atom) -> bool:
        is_page = self.spec.egress or self.located.startswith("url:")
        verb = "" if is_page or not self.located else words.delegating(leaf, use, self.located)
        if not verb or not _is_single(record, atom):
            return False
        field = last_field(atom.field)
        if leaf.role == "amount":
            return role_of_name(field) == "amount"
        if verb in stems_of("replying"):
            return not stems_of_name(field).isdisjoint(stems_of("names.giving"))
        return role_of_name(field) == "destination"

    def atom(self, norm: str) -> tuple[Atom, bool]:
        """The first field with a value that one has, and whether it stands in an anchored record; such a one first."""
        at = self.index.atoms[norm]
        best = next((number for number in at if number in self.opened), at[0])
        found = next(atom for atom in self.index.records[best].atoms if atom.norm == norm)
        return found, best in self.opened

    def anchored(self, doubled: frozenset[str]) -> Source:
        """The same with the records that are anchored, where some names stand for several things.

        Exactly one named record is; of two or more none, and a result that is one record where it is `located`.
        """
        opened = {number for number, names in self.named if names - doubled} if len(self.named) == 1 else set[int]()
        if self.index.is_one and self.located and self.index.records:
            opened.add(0)
        return replace(self, opened=frozenset(opened))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known when a call is judged.

    `own` are those of the words that persons have said, where a model or a program has written others: these say what
    is to be done, and vouch for no value. `fields` finds the results that hold a value as a field, `doubled` are the
    names under which several things were read. `endorsed` are the values that a person's yes made the user's, in one
    role in calls of one tool. `today` is in ISO form or "". `degraded` are the calls whose results a model should have
    read for orders, and has not. `accepted` are the pins of foreign tools of which a person has approved a call,
    `doubted` the tools that look like others, with the reason. `step_kind` is what the running step of a plan is.
    `repeats`: the model that asks is known to ask once more for what it has done.
    """

    words: Words
    config: GuardConfig
    sources: tuple[Source, ...] = ()
    fields: Fields = Fields()
    doubled: frozenset[str] = frozenset()
    endorsed: frozenset[tuple[str, Role, str]] = frozenset()
    today: str = ""
    step_kind: StepKind = "tool"
    repeats: bool = False
    own: Words | None = None
    degraded: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()
    doubted: Mapping[str, str] = field(default_factory=dict[str, str])

    def with_yes(self, tool: str, values: Iterable[tuple[Role, str]]) -> Known:
        """What is known after a person's yes to a call of that tool."""
        return replace(self, endorsed=self.endorsed.union((tool, role, norm) for role, norm in values))

    def days(self) -> tuple[Day, ...]:
        """The days that a relative date may be counted from: that of the run, and results that are nothing but one."""
        found = list(dates_of(self.today))
        for index in (source.index for source in self.sources):
            if len(index.records) == 1 and len(index.records[0].atoms) == 1:
                text = index.records[0].atoms[0].text
            else:
                text = "" if index.records else index.text
            days = dates_of(text) if len(text) <= _LONGEST_DATE else ()
            found += days if len(days) == 1 else ()
        return tuple(found)

    def with_source(self, source: Source, *, is_error: bool) -> Known:
        """What is known after a result; an error names nothing."""
        records = () if is_error else source.index.records
        named = ((number, _names_of(self.own or self.words, record)) for number, record in enumerate(records))
        source = replace(source, named=tuple((number, names) for number, names in named if names))
        doubled = self.doubled | self._doubled_by(source)
        earlier = self.sources
        if doubled != self.doubled:
            earlier = tuple(one.anchored(doubled) for one in earlier)
        fields = self.fields.with_result(len(earlier), source.index.atoms)
        return replace(self, sources=(*earlier, source.anchored(doubled)), doubled=doubled, fields=fields)

    def _doubled_by(self, source: Source) -> frozenset[str]:
        """The names that stand for more than one thing, now that this result is there.

        What an own tool gives back of what it has just made or sent is no second thing.
        """
        if not source.named or self._is_echo(source):
            return frozenset()
        if len(source.named) > MOST_NAMED:  # which of them is meant, nobody can tell
            return frozenset[str]().union(*(names for _, names in source.named))
        return frozenset(
            name
            for one in (*self.sources, source)
            if 0 < len(one.named) <= MOST_NAMED and not self._is_echo(one)
            for number, names in one.named
            for other, others in source.named
            for name in names & others
            if _is_another(one.index.records[number], source.index.records[other], is_one_tool=one.name == source.name)
        )

    def _is_echo(self, source: Source) -> bool:
        return not source.spec.is_foreign and guess(source.spec, self.config.guess).effect not in ("read", None)


def _names_of(words: Words, record: Record) -> frozenset[str]:
    """The names of the words that a record bears: a short field is one, or mainly one, or stands whole in the words."""
    found: set[str] = set()
    for atom in record.atoms:
        if not atom.is_text or len(atom.text) < LEAST_NAMING:
            continue
        text = atom.norm[5:]
        if atom.norm in words.norms:
            names = [atom.norm]
        elif atom.norm.startswith("text:"):
            names = [f"text:{name}" for name in words.names if len(name) >= LEAST_BEGINNING and _begins(text, name)]
            if len(text) >= LEAST_WHOLE and " " in text and holds(words.anchor.text, text):
                names.append(atom.norm)
        else:
            continue
        if names and stems_of("names.telling").isdisjoint(stems_of_name(last_field(atom.field))):
            found.update(names)
    return frozenset(found)


def last_field(field: str) -> str:
    """The name of a field without those around it; an element of a list has that of its list."""
    return field.removesuffix(".*").rpartition(".")[2]


def _identified(record: Record, spec: ToolSpec, names: frozenset[str]) -> list[str]:
    """Which of the names that a record bears say whose it is, or which thing: those in a field of its identity."""
    found: list[str] = []
    for atom in record.atoms:
        field = last_field(atom.field)
        if field in spec.identity if spec.identity else not stems_of_name(field).isdisjoint(stems_of("names.identity")):
            found += [n for n in names if atom.norm == n or (atom.is_text and _begins(atom.norm[5:], n[5:]))]
    return found


def _is_single(record: Record, atom: Atom) -> bool:
    """Whether a record holds no other address of that kind; of what is none, no other value of that role."""
    kind, role = atom.norm.partition(":")[0], role_of_name(last_field(atom.field))
    if atom.norm.startswith(_ADDRESSES):
        return all(other.norm == atom.norm for other in record.atoms if other.norm.startswith(kind))
    return all(other.norm == atom.norm for other in record.atoms if role_of_name(last_field(other.field)) == role)


def _begins(text: str, name: str) -> bool:
    """Whether a text begins with a name that is at least half of its words: "Ann Lee", not "Ann, pay this at once"."""
    is_begun = text.startswith(name) and not text[len(name) : len(name) + 1].isalnum()
    return is_begun and len(text.split()) <= 2 * len(name.split())


def _is_another(one: Record, other: Record, *, is_one_tool: bool) -> bool:
    """Whether two records that bear one name cannot be the same thing: other addresses, or another id, path or file.

    What one tool gives twice under the same id is the same thing.
    """
    if one == other:
        return False
    ours, theirs = _values(one), _values(other)
    common = ours.keys() & theirs.keys()
    if is_one_tool and any(is_id(name) and ours[name] == theirs[name] for name in common):
        return False
    if any(role_of_name(name) == "object" and ours[name].isdisjoint(theirs[name]) for name in common):
        return True
    here, there = ({a.norm for a in record.atoms if a.norm.startswith(_ADDRESSES)} for record in (one, other))
    return bool(here) and bool(there) and here != there


def _values(record: Record) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for atom in record.atoms:
        found.setdefault(last_field(atom.field), set()).add(atom.norm)
    return found

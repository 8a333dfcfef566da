"""The slot that the user's words give to a value: in which clause it stands, what is done there, on which side of it.

"Mail Ann about Bob" makes Ann the one who gets a mail, and says of Bob that he gets none. What cannot be read is told
apart from what is read otherwise: the only value of its kind needs no slot. Source: spec/guard.md, section 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, islice, product
from typing import Literal

from surefoot.core.gate.roles import Leaf, currencies_in
from surefoot.core.text.look import normal_text, places_in
from surefoot.core.text.numerals import number, readings
from surefoot.core.text.values import hard_tokens, norm_of, numbers_of
from surefoot.core.text.words import late, stem, stems_of, stems_of_name, word_set
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard import Clause, Entity, IntentAnchor
from surefoot.types.rules import ValueKind
from surefoot.types.tools import Effect

Side = Literal["to", "from", "of", "out", "direct", ""]
"""By what stands beside it, a value is where something goes, whence it comes, whose it is, spoken of, or the object."""

_NEAR = 5  # words between a preposition, or a verb, and the value that it is about

_BEFORE = late(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[,、&]|\d+")
_CHINESE_SIDE = late(
    r"(?:({sides.zh_to})|({sides.zh_from})|({sides.zh_out})|(?:{sides.zh_direct}))\W{0,2}(?:\w{1,4}\W{0,2})?\Z"
)
_SUM = late("{sum}", re.IGNORECASE)
_LABEL = late(r"(?:\b(?:{labels|})s?|{cjk_labels|}|#)\W{0,3}(?:(?:no|nr|num)\b\.?|numbers?|#|号)?\W{0,3}\Z")
_SAYS_HOW_MUCH = late(r"\b(?:{actions.transact|}|of|to|is|by|amount)\s\Z")
_LIMIT = late(r"(?:{at_most}|{more_than})\W{0,3}\Z")
_POINTS = late("(?:{points_at})\\Z")
_POINTS_BEHIND = late("{points_behind}")
_AGAIN = late("{meant_again}")
_TURNED = late("{reversed_before}")


def side_of(clause: Clause, at: int, end: int = 0) -> Side:
    """On which side of what a clause does a value stands that begins, and ends, at a place of it."""
    before = clause.text[max(0, at - 200) : at]
    if end and clause.text.startswith(("的", "'s", "’s"), end):
        return "of"
    if m := _CHINESE_SIDE.search(before):
        return "to" if m[1] else "from" if m[2] else "out" if m[3] else "direct"
    far, is_joined = 0, False
    said = _BEFORE.findall(before)[::-1]
    for word, prior in zip(said, [*said[1:], ""], strict=False):  # of none there is none before
        if word in word_set("sides.out"):  # "anybody except Ann", after "not": it is Ann
            return "to" if _TURNED.search(before) and word in word_set("excepting") else "" if is_joined else "out"
        if word in word_set("sides.to"):
            return "to"
        if word in word_set("sides.from") and not (word == "of" and prior in word_set("set_words")):  # "each of"
            return "of" if word == "of" else "from"
        if stem(word) == clause.verb or word == clause.verb or clause.verb.endswith(word):
            return "direct"
        far, is_joined = (0, True) if word in word_set("list_joints") else (far + 1, is_joined)
        if far > _NEAR:
            break
    is_item = not before or re.match(r"\s*(?:[-*•–]|\d{1,3}[.)])\s", clause.text)
    return "direct" if far <= _NEAR and (is_item or not clause.verb.isascii()) else ""


Wanted = Literal["to", "target", "from", "thing", "sum", "either"]
"""The side for a parameter. A "target" is beside one of the same kind, so that only "to" makes it clear; a "thing" is
what the clause is about, and not whose.
"""


@dataclass(frozen=True, slots=True)
class Use:
    """What a call would do. `paired`: the kinds of which it moves one to another; if it `is_sent`, somebody gets it."""

    effects: frozenset[Effect | None]
    name_stems: frozenset[str]
    paired: frozenset[ValueKind] = frozenset()
    is_sent: bool = True

    def side_for(self, leaf: Leaf) -> Wanted:
        """The side on which the words have to have a value for a parameter."""
        said = stems_of_name(leaf.name)
        is_target = not said.isdisjoint(stems_of("names.getting"))
        if not said.isdisjoint(stems_of("names.giving")) or (leaf.kind in self.paired and not is_target):
            return "from"
        if is_target and leaf.kind in self.paired:
            return "target"
        return "to" if is_target or leaf.role != "object" else "either"


Fit = Literal["exact", "yes", "no", "elsewhere", "unread"]
"""The words give the value to a call of that very name · of that effect · they say otherwise · they give it to another
call · they do not say."""

LEAST_NAMING = 3
MOST_SPOTS = 400
MOST_PAIRED = 60
MOST_PLACES = 50
"""Places of one value in the words that are looked at; and in each clause, to tell what stands beside it."""
_THINGS = frozenset(("file", "id", "quoted", "key"))


def fit_at(clause: Clause, at: int, use: Use, wanted: Wanted, end: int = 0) -> Fit:
    """Whether the words give what begins at a place of a clause to a call, on the side that it is `wanted` on."""
    side = side_of(clause, at, end)
    is_exact = clause.verb in use.name_stems
    if clause.verb and not clause.effects and not is_exact:
        return "no"  # it is left alone
    if side == "of":  # "the account of Ann" may be changed, and is not Ann
        side = "out" if wanted in ("to", "thing") and (use.is_sent or "delete" in use.effects) else "direct"
    if (
        side == "out"
        or (side == "direct" and wanted == "target")
        or (side == "from" and wanted in ("to", "target", "thing", "sum"))
    ):
        return "no"
    if side == "to" and wanted == "from":
        return "no"
    if not side or not (clause.verb or clause.effects):
        return "unread"
    return "exact" if is_exact else "elsewhere" if clause.effects.isdisjoint(use.effects) else "yes"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of the words that may be an amount: exact, its possible currencies, its clause and place there."""

    exact: str
    currencies: frozenset[str]
    place: int
    at: int


def amounts_of(clauses: Sequence[Clause]) -> tuple[Amount, ...]:
    """The amounts of the words. What stands behind a label ("invoice 12"), a year and a part of a date are none."""
    found: list[Amount] = []
    for at, clause in enumerate(clauses):
        exact = frozenset(numbers_of(clause.text))
        for m in _SUM.finditer(clause.text) if exact else ():
            currencies = currencies_in(f"{m['sign'] or ''} {m['unit'] or ''}")
            before = clause.text[max(0, m.start() - 40) : m.start()]
            is_named = _LABEL.search(before) or (
                re.fullmatch(r"(?:19|20)\d\d", m["sum"]) and not _SAYS_HOW_MUCH.search(before)
            )
            if currencies or not is_named:  # a limit is not a sum that is to be paid
                currencies = frozenset[str]() if _LIMIT.search(before) else currencies
                meant = exact.intersection(readings(m["sum"]))
                found += (Amount(value, currencies, at, m.start()) for value in sorted(meant))
                if len(found) > MOST_SPOTS:  # of more, none is told apart
                    return tuple(found)
    return tuple(found)


def has_labelled(text: str, exact: str) -> bool:
    """Whether that number stands behind a label: "invoice 12"."""
    return any(
        number(m["sum"]) == exact and _LABEL.search(text, max(0, m.start() - 40), m.start())
        for m in _SUM.finditer(text)
    )


@dataclass(frozen=True, slots=True)
class Words:
    """The user's words, ready to be compared with. `norms` are what they name, by normal form, with its spelling there.

    `plain` is their text without addresses, links and accounts. `spots` are the places of values: clause, place in it,
    group (party, thing, amount), normal form.
    """

    anchor: IntentAnchor
    norms: Mapping[str, str]
    names: tuple[str, ...]
    locators: frozenset[str]
    plain: str
    amounts: tuple[Amount, ...]
    spots: tuple[tuple[int, int, str, str], ...]

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, anchor: IntentAnchor) -> Words:
        """The words of an anchor; made once for it, so whoever reads long words makes them where they are read."""
        norms = {entity: entity_norm(entity) for entity in anchor.entities}
        amounts = amounts_of(anchor.clauses)
        parts: list[str] = []
        at = 0
        for token in hard_tokens(anchor.text):
            if token.kind in ("email", "url", "account", "phone"):  # a piece of an address is not an address
                parts += (anchor.text[at : token.start], "\n")
                at = token.end
        return cls(
            anchor,
            {norm: normal_text(entity.text) for entity, norm in norms.items()},
            tuple(sorted({n[5:] for n in norms.values() if n.startswith("text:") and len(n) >= LEAST_NAMING + 5})),
            frozenset(norm for entity, norm in norms.items() if entity.kind != "name"),
            "".join((*parts, anchor.text[at:])),
            amounts,
            tuple(sorted(_spots_of(anchor.clauses, norms, amounts))),
        )

    def place(self, leaf: Leaf, use: Use, wanted: Wanted | None = None) -> Fit:
        """Whether the words give a value to a call that puts it where a leaf stands, or on the `wanted` side."""
        side = wanted or use.side_for(leaf)
        spelled = self.norms.get(leaf.norm) or leaf.norm.partition(":")[2]
        places = ((clause, at) for clause in self.anchor.clauses for at in places_in(clause.text, spelled))
        found = {fit_at(clause, at, use, side, at + len(spelled)) for clause, at in islice(places, MOST_PLACES)}
        best: tuple[Fit, ...] = ("exact", "yes", "no", "elsewhere", "unread")
        fit: Fit = next(fit for fit in best if fit in found or fit == "unread")
        return "yes" if fit == "elsewhere" and self._is_meant_again(leaf.norm, use) else fit

    def _is_meant_again(self, norm: str, use: Use) -> bool:
        """Whether the only thing that the words name is what a later clause calls "it", or "the file"."""
        things = [(place, one) for place, _, group, one in self.spots if group == "thing"]
        if {one for _, one in things} != {norm}:
            return False
        named = {place for place, _ in things}
        later = (c for place, c in enumerate(self.anchor.clauses) if place > min(named) and place not in named)
        return any(c.effects & use.effects and _AGAIN.search(c.text) for c in later)

    def is_placed(self, leaf: Leaf, use: Use) -> bool:
        """Whether a value of the words stands in the slot that a call puts it in (section 9, rows 3 and 4).

        What they do not place is good if it is the only one of its kind. Where they give others to a call of that very
        name, those of other verbs are not for it.
        """
        if leaf.role == "amount" and leaf.kind == "number":
            return self._is_amount(leaf, use)
        sums = [one for one in self.amounts if f"number:{one.exact}" == leaf.norm]
        if leaf.role in ("destination", "object") and sums and all(one.currencies for one in sums):
            return False  # a sum of money is nobody to pay, and no thing
        fit = self.place(leaf, use) if leaf.role in ("destination", "object") else "exact"
        if fit in ("exact", "no"):
            return fit == "exact"
        entities = [(entity.kind, entity_norm(entity)) for entity in self.anchor.entities]
        kinds = {kind for kind, norm in entities if norm == leaf.norm}
        alike = [[norm for kind, norm in entities if kind == own and norm != leaf.norm] for own in kinds]
        if fit == "yes":
            return all(self.place(replace(leaf, norm=norm), use) != "exact" for norms in alike for norm in norms)
        return not all(alike) if kinds else leaf.role != "destination"

    def torn(self, leaves: Sequence[Leaf], use: Use) -> Leaf | None:
        """The first of some values of the words that stands with another than in the call: "50 EUR to Ann, 70 to Bob".

        Two belong together if one clause has both, as the only ones of their groups or the same one in turn; or if
        neither stands beside another of the other's group.
        """
        if len(leaves) > 1 and (len(leaves) > MOST_PAIRED or len(self.norms) + len(self.amounts) > MOST_SPOTS):
            return leaves[0]
        turns: dict[str, dict[int, int]] = {leaf.norm: {} for leaf in leaves}
        groups: dict[int, dict[str, list[str]]] = {}
        for place, at, group, norm in self.spots:
            if fit_at(self.anchor.clauses[place], at, use, "either") != "no":
                here = groups.setdefault(place, {}).setdefault(group, [])
                here += () if norm in here else (norm,)
                turns.get(norm, {}).setdefault(place, here.index(norm))
        group_of = {norm: group for _, _, group, norm in self.spots}
        for one, other in combinations(leaves, 2):
            first, second = (group_of.get(leaf.norm, "") for leaf in (one, other))
            if first == second or not turns[one.norm] or not turns[other.norm]:
                continue
            both = turns[one.norm].keys() & turns[other.norm].keys()
            sizes = {n: (len(groups[n].get(first, ())), len(groups[n].get(second, ()))) for n in groups}
            if any(min(sizes[n]) < 2 or turns[one.norm][n] == turns[other.norm][n] for n in both):  # noqa: PLR2004  # of one there is but one
                continue
            if both or any(sizes[n][1] for n in turns[one.norm]) or any(sizes[n][0] for n in turns[other.norm]):
                return other
        return None

    def _is_amount(self, leaf: Leaf, use: Use) -> bool:
        """Whether a number is one of the amounts; where the words give sums of money, it has to be one of these."""
        is_count = not stems_of_name(leaf.name).isdisjoint(stems_of("names.quantity"))
        has_sums = not is_count and any(one.currencies for one in self.amounts)
        meant = [one for one in self.amounts if (not one.currencies if is_count else one.currencies or not has_sums)]
        named = currencies_in(text := str(leaf.value)) or frozenset(re.findall("[A-Z]{3,5}", text))
        meant = [one for one in meant if not (named and one.currencies) or not named.isdisjoint(one.currencies)]
        exact = leaf.norm.removeprefix("number:")
        fits = {fit_at(self.anchor.clauses[one.place], one.at, use, "sum") for one in meant if one.exact == exact}
        return not fits.isdisjoint(("exact", "yes")) or (bool(fits - {"no"}) and len({one.exact for one in meant}) == 1)

    def delegating(self, leaf: Leaf, use: Use, located: str) -> str:
        """The verb of a clause that has a call take a value from what stands at a place and names none; else ""."""
        spelled = self.norms.get(located, "")
        others = (one for one in self.norms if one != located and one.startswith(("email:", "digits:")))
        if leaf.role == "amount":
            is_given = any(self.anchor.clauses[one.place].effects & use.effects for one in self.amounts)
        else:
            is_given = any(self.place(replace(leaf, norm=one), use) in ("exact", "yes") for one in others)
        for clause in self.anchor.clauses if not is_given else ():
            for at in places_in(clause.text, spelled):
                before, after = clause.text[:at], clause.text[at + len(spelled) :]
                is_reply = clause.verb in stems_of("replying")
                points = leaf.role == "amount" or is_reply or _POINTS.search(before) or _POINTS_BEHIND.match(after)
                if points and fit_at(clause, at, use, "either") in ("exact", "yes"):
                    return clause.verb
        return ""


def _spots_of(
    clauses: Sequence[Clause], norms: Mapping[Entity, str], amounts: Sequence[Amount]
) -> Iterator[tuple[int, int, str, str]]:
    if len(norms) + len(amounts) > MOST_SPOTS:
        return
    for one in amounts:
        yield one.place, one.at, "amount", f"number:{one.exact}"
    for (entity, norm), (place, clause) in product(norms.items(), enumerate(clauses)):
        for at in islice(places_in(clause.text, normal_text(entity.text)), MOST_PLACES):
            yield place, at, "thing" if entity.kind in _THINGS else "party", norm


def entity_norm(entity: Entity) -> str:
    """An entity in the form in which leaves are compared."""
    return norm_of(entity.text, "text" if entity.kind in ("quoted", "file", "name") else None)

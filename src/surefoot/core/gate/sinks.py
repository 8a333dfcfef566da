"""What a call would do with its values: each leaf against its sink, and whether the call touches the user's words.

Source: spec/guard.md, sections 4.7 and 4.8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import cast

from surefoot.core.gate.effects import Guess, bare_name, guess
from surefoot.core.gate.origins import GOOD, evidence_of
from surefoot.core.gate.roles import Leaf, currencies_in, is_sensitive, leaves_of, schema_at
from surefoot.core.gate.slots import Use
from surefoot.core.gate.sources import Known, Source
from surefoot.core.text.look import holds, is_chinese, is_twin, normal_text, without_accents
from surefoot.core.text.values import MOST_TOKENS, hard_tokens, has_user_info, norm_of
from surefoot.core.text.words import entries, late, pattern, phrase, stem, stems, stems_of, stems_of_name, table
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard import Evidence
from surefoot.types.inner import Quoted
from surefoot.types.tools import Effect, ToolSpec

LEAST_ENTITY = 4
LEAST_WORD = 4
SHARE_OF_WORDS = 0.5
SHARE_OF_PRIVATE = 0.3
LONGEST_TIME = 40
_HALF_URL = late(r"\s*(?:[A-Za-z][A-Za-z0-9+.-]+:/|[/\\]{2})")  # what a client may still complete to a URL
_WORD = late(r"[^\W\d_]{2,}")
_CJK_LETTERS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK = late(rf"[{_CJK_LETTERS}]")
_UNIT = late(rf"[{_CJK_LETTERS}]|[^\W{_CJK_LETTERS}]+")
"""A letter of a script without spaces, or a word; marks and spaces between them do not count."""


@dataclass(frozen=True, slots=True)
class Aimed:
    """A call with all that its sinks say. `odd` are the leaves that need a person, `twins` those that must not pass.

    `bad` are the sensitive leaves without a good origin, `is_touching` whether it touches the user's words.
    """

    effect: Guess
    evidence: tuple[Evidence, ...]
    odd: tuple[Evidence, ...]
    twins: tuple[Evidence, ...]
    bad: tuple[Evidence, ...]
    is_touching: bool

    @property
    def is_effectful(self) -> bool:
        """Whether the call may change something; an unknown effect may."""
        return self.effect.effect != "read"

    @property
    def classes(self) -> frozenset[Effect | None]:
        """The effects that the call stands for."""
        return self.effect.classes(to_somebody=any(e.role == "destination" for e in self.evidence))


def aimed(known: Known, spec: ToolSpec, arguments: Mapping[str, object]) -> Aimed:
    """The leaves of a call against their sinks."""
    effect = guess(spec, known.config.guess)
    found: list[Evidence] = []
    odd: list[Evidence] = []
    twins: list[Evidence] = []
    bad: list[Evidence] = []
    is_touching = False
    leaves = leaves_of(arguments, spec)
    use = use_of(spec, effect, leaves)
    reach = use.effects & {"communicate", "transact", "delete"} if use is not None else frozenset[Effect]()
    for leaf in leaves:
        evidence = evidence_of(known, spec, leaf, use)
        found.append(evidence)
        shown, is_name = str(leaf.value), leaf.kind == "text"  # "Zurich" is a way to spell "Zürich"
        drawn = (one.text for one in known.words.anchor.entities if is_twin(shown, one.text))
        if twin := next((t for t in drawn if not is_name or without_accents(shown) != without_accents(t)), ""):
            twins.append(replace(evidence, nearest=twin, note="drawn like it, but other characters"))
        elif leaf.kind == "url" and evidence.origin not in GOOD and has_user_info(shown):
            twins.append(replace(evidence, note="a name before the host makes it look like another's"))
        if effect.effect == "read":
            why = _leaves_the_house(known, spec, effect, leaf, evidence) if known.config.fetch == "ask" else ""
            odd += (replace(evidence, note=why),) if why else ()
            continue
        is_touching = is_touching or _touches(known, leaf, evidence)
        is_good = evidence.origin in GOOD
        if _acts_on(effect, leaf, spec):
            bad += () if is_good else (evidence,)
            odd += () if is_good else (evidence,)
            continue
        if not is_good and is_sensitive(leaf.role, leaf.path, spec):
            bad.append(evidence)
        strange = _odd(known, spec, effect, leaf, evidence)
        why = "" if strange else doubt_of(known, spec, leaf, leaves, reach)
        odd += (replace(evidence, note=why),) if why else strange
    placed = [
        (leaf, evidence)
        for leaf, evidence in zip(leaves, found, strict=True)
        if evidence.origin == "user"
        and leaf.role in ("destination", "object", "amount")
        and (spec.name, leaf.role, leaf.norm) not in known.endorsed
    ]
    torn = known.words.torn([leaf for leaf, _ in placed], use) if use is not None else None
    odd += [replace(e, note="your words name it beside another value") for leaf, e in placed if leaf is torn]
    return Aimed(effect, tuple(found), tuple(odd), tuple(twins), tuple(bad), is_touching)


def use_of(spec: ToolSpec, effect: Guess, leaves: Sequence[Leaf]) -> Use | None:
    """What a call would do with its values; None for one that only reads."""
    if effect.effect == "read":
        return None
    effects = effect.classes(to_somebody=any(leaf.role == "destination" for leaf in leaves))
    told = [leaf for leaf in leaves if leaf.role in ("object", "destination")]
    targets = [leaf for leaf in told if not stems_of_name(leaf.name).isdisjoint(stems_of("names.getting"))]
    is_sent = not effect.classes(to_somebody=False).isdisjoint(("communicate", "transact"))
    others = {leaf.kind for leaf in told if leaf not in targets}
    return Use(
        effects,
        stems_of_name(bare_name(spec)),
        frozenset(leaf.kind for leaf in targets if leaf.kind in others),
        is_sent,
    )


def _acts_on(effect: Guess, leaf: Leaf, spec: ToolSpec) -> bool:
    """Whether a leaf says on what a call acts, although its role does not: it selects that, or bounds what is deleted.

    What is called a time and says none may be anything. A text is deleted, unless it is called like a remark.
    """
    if leaf.role == "time":
        text = str(leaf.value)
        says_time = len(text) <= LONGEST_TIME and (re.search(r"\d", text) or phrase("relative_dates").search(text))
        return effect.effect == "delete" or not says_time
    words = stems_of_name(leaf.name)
    if effect.effect == "delete" and leaf.role == "content":
        return words.isdisjoint(stems_of("names.remarks")) or not words.isdisjoint(stems_of_name(bare_name(spec)))
    if leaf.role != "selector":
        return False
    if effect.effect == "delete":  # a page that is no number is one of a wiki
        return words.isdisjoint(stems_of("names.ordering")) or (leaf.kind != "number" and "page" in words)
    return not words.isdisjoint(stems_of("names.selecting"))


def _leaves_the_house(known: Known, spec: ToolSpec, effect: Guess, leaf: Leaf, evidence: Evidence) -> str:
    """Why a person has to look at a value that a read carries away (section 9, row 6); "" where the place is good."""
    if evidence.origin in GOOD:
        return ""
    shown = str(leaf.value)
    opened = [leaf] if leaf.kind == "url" or _HALF_URL.match(shown) else []
    is_place = leaf.kind != "email" and _HOST.fullmatch(shown.strip())
    if leaf.role == "destination" and (effect.egress or is_place):
        opened.append(leaf)
    if leaf.kind == "text" and leaf.role != "content":
        links = [token for token in hard_tokens(shown) if token.kind == "url"]
        opened += [Leaf(leaf.path, link.text, leaf.role, link.kind, link.norm) for link in links]
    if effect.egress and leaf.role == "selector":  # a host that a result holds, and the words do not
        for host in (m[0] for m in _HOST.finditer(shown)):
            plain, norm = normal_text(host), norm_of(host)
            if not holds(known.words.anchor.text, plain) and any(
                holds(source.index.text, plain) or norm in source.index.atoms for source in known.sources
            ):
                opened.append(Leaf(leaf.path, host, leaf.role, "url", norm_of(host, "url")))
    if any(one is leaf or evidence_of(known, spec, one).origin not in GOOD for one in opened):
        return "it opens a place that is not from your words"
    if not effect.egress:
        return ""
    if private := _private(known, leaf, evidence):
        return private[0].note
    return "it carries away what was read" if carries(known, shown) else ""


_HOST = late(
    r"(?:[a-z][a-z0-9+.-]*:|//|\\\\)\S+|[^\s@/]+@[\w.-]+\S*|\[[\da-f:.]+\]\S*|0x[\da-f]{8}\b\S*|(?:\d{1,3}\.){3}\d{1,3}\S*"
    r"|(?:[\w-]{1,63}\.){1,8}(?=[\w-]*[^\W\d_])[\w-]{2,24}(?![\w.-])(?:[:/?#]\S*)?",
    re.IGNORECASE,
)
"""What an opener would take for a place: a scheme, a name before "@", an IP in any form, labels with dots."""

MOST_CARRIED = 64  # characters of a result that a read may take along where the words do not have them
_BLOCK = MOST_CARRIED // 2


def carries(known: Known, shown: str) -> bool:
    """Whether a text holds more of a result than a person would have typed: a run that the words do not have."""
    text, words = normal_text(shown), known.words.anchor.text
    for at in range(0, len(text) - _BLOCK, _BLOCK):  # each longer run holds one of these blocks whole
        block = text[at : at + _BLOCK]
        texts = [source.index.text for source in known.sources if block not in words and block in source.index.text]
        starts = range(max(0, at + _BLOCK - MOST_CARRIED - 1), at + 1) if texts else ()
        runs = (text[start : start + MOST_CARRIED + 1] for start in starts if start + MOST_CARRIED < len(text))
        if any(run in one for run in runs for one in texts):
            return True
    return False


def _odd(known: Known, spec: ToolSpec, effect: Guess, leaf: Leaf, evidence: Evidence) -> tuple[Evidence, ...]:
    """What of a leaf of a call with an effect a person has to look at."""
    is_good, is_declared = evidence.origin in GOOD, evidence.origin == "declared"
    match leaf.role:
        case "destination":  # of a price table nothing is paid
            return () if is_good and not (is_declared and effect.effect == "transact") else (evidence,)
        case "secret":
            return () if is_good and not is_declared else (evidence,)
        case "object" | "amount":
            return () if is_good else (evidence,)
        case "time":
            return (evidence,) if not is_good and known.words.anchor.dates else ()
        case "content":
            tokens = () if is_good else _odd_tokens(known, spec, leaf, evidence)
            return tokens or _private(known, leaf, evidence)
        case "option" if evidence.origin == "config" and _is_other_money(known, spec, leaf):
            return (evidence,)
        case _:
            return () if is_good or not is_sensitive(leaf.role, leaf.path, spec) else (evidence,)


def _is_other_money(known: Known, spec: ToolSpec, leaf: Leaf) -> bool:
    """Whether it is a currency that neither the words give nor the schema by default (section 9, row 3)."""
    words = known.own or known.words
    said = frozenset(each for one in words.amounts for each in one.currencies)
    wanted = late("{currency_wanted}").findall(words.anchor.text) if said else ()
    said = said.union(*map(currencies_in, wanted))
    is_usual = leaf.value == schema_at(leaf.path[:1], spec.parameters).get("default")
    return bool(said and (named := currencies_in(str(leaf.value))) and named.isdisjoint(said)) and not is_usual


def _odd_tokens(known: Known, spec: ToolSpec, leaf: Leaf, evidence: Evidence) -> tuple[Evidence, ...]:
    """The hard tokens of a text that goes out, each judged as if it stood alone."""
    if known.config.content_tokens == "allow":
        return ()
    tokens = hard_tokens(str(leaf.value), is_content=True)
    if len(tokens) >= MOST_TOKENS:  # what stands behind them was not looked at
        return (replace(evidence, note="it holds more addresses and numbers than can be looked at"),)
    alone = (evidence_of(known, spec, Leaf(leaf.path, t.text, "content", t.kind, t.norm)) for t in tokens)
    said = known.words.anchor.text
    return tuple(e for e in alone if e.origin not in GOOD and not holds(said, normal_text(e.value)))


def _private(known: Known, leaf: Leaf, evidence: Evidence) -> tuple[Evidence, ...]:
    """A text that quotes a confidential result which the words do not name."""
    for source in known.sources:
        if source.spec.private and not source.is_named and quotes(str(leaf.value), source):
            note = f"it quotes what {source.name} gave, which is confidential"
            return (replace(evidence, source_id=source.call_id, note=note),)
    return ()


def quoted_in(known: Known, text: str) -> Quoted:
    """What a text has of the results of a run: a passage, and whether it is of what is confidential."""
    private = (one for one in known.sources if one.spec.private and not one.is_named)
    if any(quotes(text, source) for source in private):
        return "private"
    return "read" if carries(known, text) else ""


def quotes(text: str, source: Source) -> bool:
    """Whether a text quotes a result: a hard token of it, or a share of its own words in threes (section 4.7)."""
    if any(token.norm in source.index.tokens or token.norm in source.index.atoms for token in hard_tokens(text)):
        return True
    plain = normal_text(text)
    split = _UNIT.findall if _CJK.search(plain) else str.split

    def trigrams(text: str) -> set[tuple[str, ...]]:
        words = split(text)
        return set(zip(words, words[1:], words[2:], strict=False))

    ours = trigrams(plain)
    said = " ".join([source.index.text, *(a.norm[5:] for r in source.index.records for a in r.atoms)]) if ours else ""
    return bool(ours) and len(ours & trigrams(said)) / len(ours) >= SHARE_OF_PRIVATE


def _touches(known: Known, leaf: Leaf, evidence: Evidence) -> bool:
    """Whether a leaf has to do with what the user said: it is theirs, or speaks of it."""
    if leaf.role not in ("time", "option") and (
        evidence.origin in ("user", "declared") or evidence.source_id == "user"
    ):
        return True
    text = normal_text(str(leaf.value))
    if leaf.role in ("destination", "object"):  # nothing shows where a Chinese name ends: it is a question then
        return len(text) > 1 and is_chinese(text) and holds(known.words.anchor.text, text)
    if leaf.role != "content":
        return False
    if any(len(name) >= LEAST_ENTITY and holds(text, name) for name in known.words.names):
        return True
    words = [word for word in _WORD.findall(text) if len(word) >= LEAST_WORD]
    ours = sum(stem(word) in known.words.anchor.stems for word in words)
    return bool(words) and ours >= SHARE_OF_WORDS * len(words)


LONGEST_CHOICE = 60  # characters of a text that is a choice and not a text of its own

_TITLED = late("{gives_title}")
_PLACE_GIVEN_OVER = late("{gives_place_over}")
_GAP = late(r"\{[^{}]*\}|<[^<>]*>|\[[^\[\]]*\]")
_LETTERS = late(r"[^\W\d_]+")


@cache
def _powers() -> tuple[tuple[frozenset[str], re.Pattern[str], re.Pattern[str]], ...]:
    """What parameters that give a power are called, with the words for it, and those for the opposite."""
    names = cast("Mapping[str, object]", table("lexicon.en")["powers"])
    return tuple(
        (
            stems_of(f"powers.{name}.names"),
            re.compile(pattern(f"powers.{name}.on") or r"\Z\A."),
            re.compile(pattern(f"powers.{name}.off") or r"\Z\A."),
        )
        for name in names
    )


def doubt_of(known: Known, spec: ToolSpec, leaf: Leaf, leaves: Sequence[Leaf], reach: Set[Effect | None]) -> str:
    """Why a person has to look at what a leaf chooses, "" if nothing. `reach`: what the call does beyond the house."""
    if (spec.name, leaf.role, leaf.norm) in known.endorsed:
        return ""
    named, text = stems_of_name(leaf.name), normal_text(str(leaf.value))
    default = schema_at(leaf.path, spec.parameters).get("default")
    if isinstance(leaf.value, bool):
        others = [normal_text(str(one.value)) for one in leaves if one is not leaf and one.kind == "text"]
        clauses = [c.text for c in known.words.anchor.clauses]  # those that name a value of the call, else all words
        named_in = [said for said in clauses if any(holds(said, text) for text in others if len(text) > 1)]
        said = "\n".join(named_in) or known.words.anchor.text
        for names, on, off in _powers():
            if not names.isdisjoint(named):
                ours, theirs = (on, off) if leaf.value else (off, on)
                if ours.search(said):
                    return ""
                is_usual = leaf.value == (default or False) and not theirs.search(said)
                return "" if is_usual else "your words do not say so"
        return ""
    if not isinstance(leaf.value, str) or len(text) > LONGEST_CHOICE or leaf.value == default or _is_said(known, text):
        return ""
    is_power = any(not names.isdisjoint(named) for names, _, _ in _powers())
    if leaf.role == "option":
        return "your words do not say so" if is_power else ""
    if reach and not named.isdisjoint(stems_of("names.placing")):
        acted_on = {one.norm for one in leaves if one.role == "object"}
        records = (s.index.records[at] for s in known.sources for at in s.index.atoms.get(leaf.norm, ()))
        if any(atom.norm in acted_on for record in records for atom in record.atoms):
            return ""  # what the call acts on has that value already
        is_read = any(leaf.norm in s.index.atoms or s.index.says(leaf.norm) for s in known.sources)
        if reach == {"communicate"} and is_read and _PLACE_GIVEN_OVER.search(known.words.anchor.text):
            return ""  # a result gives it, and the words have it taken from one: "the location is its address"
        return "your words do not say where or about what"
    is_title = leaf.role == "content" and not named.isdisjoint(stems_of("names.titled"))
    makes = is_title and not stems_of("names.making").isdisjoint(stems_of_name(bare_name(spec)))
    return "your words give another title" if makes and _gives_another_title(known, text) else ""


def _is_said(known: Known, text: str) -> bool:
    """Whether the words say a choice: the whole of it, all words of it, or what it stands for ("rw": to edit)."""
    anchor = known.words.anchor
    if holds(anchor.text, text) or ((said := stems(_LETTERS.findall(text))) and said <= anchor.stems):
        return True
    meant = "|".join(entries(f"choices.{text}")) if text.isidentifier() else ""
    return bool(meant) and re.search(rf"(?<![a-z])(?:{meant})", anchor.text) is not None


def _gives_another_title(known: Known, text: str) -> bool:
    """Whether the words give a title that this one is not; one with a gap ("Dinner at {place}") leaves that open."""
    anchor = known.words.anchor
    quoted = [normal_text(e.text) for e in anchor.entities if e.kind == "quoted"]
    if any(_GAP.search(one) and _fills(text, _GAP.split(one)) for one in quoted):
        return False
    return bool(quoted) or _TITLED.search(anchor.text) is not None


def _fills(text: str, parts: Sequence[str]) -> bool:
    """Whether a text has the parts of another in their order, from its beginning to its end."""
    at = 0
    for part in parts:
        at = text.find(part, at) + len(part) if part in text[at:] else len(text) + 1
    return text.startswith(parts[0]) and text.endswith(parts[-1]) and at <= len(text)

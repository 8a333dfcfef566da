"""The user's words, read before any other text: what they ask for, what they name, what they forbid.

In time linear in their length. What a model reads in them limits, and hardly ever opens: an effect that the rules
missed counts only with words that it quotes, outside of what they negate; a target must stand in the words. What does
not is dropped and counted. Source: spec/guard.md, sections 3.2, 4.6 and 5.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from surefoot.core.gate.clauses import clauses_of
from surefoot.core.gate.effects import CHINESE_ACTIONS, effects_in
from surefoot.core.gate.forbids import Named, Rules, Span, read_rules
from surefoot.core.gate.record import BY_MODEL, TARGETS
from surefoot.core.text.look import holds, normal_text, without_format
from surefoot.core.text.values import hard_tokens, norm_of, numbers_of
from surefoot.core.text.words import dates_of, late, phrase, rows, stem, stems, stems_of, word_set
from surefoot.types import guard
from surefoot.types.tools import Effect

RESPOND = guard.AbstractStep("answer", "RESPOND", allowed_capabilities=("REASONING",))  # in which every sketch ends

MOST_READ = 102_400  # characters of the words that are read; of longer ones each effect is a question

LEAST_NAME = 3
MOST_NAME_WORDS = 8
LONGEST_QUOTE = 80
MASK = "\ufffc"  # stands for each character of what was masked: no letter, no space, no mark of a sentence

_WORD = late(r"[^\W\d_]{2,}")
_SENTENCE = late(r"[^.!?;\n。！？；]+(?:[.](?!\s|\Z)[^.!?;\n。！？；]*)*")
_ADOPTION = ("adoption_verb", "adoption_noun", "adoption_place")  # to do what stands elsewhere, with the place

_NO_ADOPTION = late("{no_adoption}|{negations}|{cjk_negations}", re.IGNORECASE)
_CUES: Mapping[guard.Cue, re.Pattern[str]] = {
    "delegation": late("{delegation}", re.IGNORECASE),
    "set": late(r"\b(?:{set_words|})\b|{cjk_set|}", re.IGNORECASE),
    "relative_date": late("{relative_dates}", re.IGNORECASE),
}

_QUOTES = tuple(
    late(pattern)
    for pattern in (
        rf"(?<![A-Za-z0-9])\"(?=\S)([^\"]{{2,{LONGEST_QUOTE}}})(?<=\S)\"(?![A-Za-z0-9])",
        rf"(?<![A-Za-z0-9])'(?=\S)((?:[^'\n]|(?<=[A-Za-z])'(?=[A-Za-z])){{2,{LONGEST_QUOTE}}})(?<=\S)'(?![A-Za-z0-9])",
        rf"`([^`\n]{{2,{LONGEST_QUOTE}}})`",
        *(rf"{a}([^{a}{b}]{{2,{LONGEST_QUOTE}}}){b}" for a, b in ("“”", "‘’", "「」", "『』", "《》", "«»", "【】")),
    )
)
_PATH = late(r"[\w~./\\-]+")
_FILE = late(r"(.*[^./\\]\.(?:{file_types|}))(?![A-Za-z0-9])", re.IGNORECASE)
_FILE_ENDS = late(r"\.(?:{file_types|})(?=[\u3400-\u9fff])", re.IGNORECASE)
_ID_VALUE = r"[\"'“「#]{0,2}([A-Za-z]{0,6}[-_]?\d[A-Za-z0-9_-]{0,40})"
_ID = late(
    rf"(?:(?<![A-Za-z0-9])(?:ids?|no\.|nr\.?|num\.?|numbers?)|编号|号码|序号)\s{{0,3}}(?:(?:is|of|=|:|为|是)\s{{0,3}})?{_ID_VALUE}",
    re.IGNORECASE | re.ASCII,
)
_NUMBER_SIGN = late(r"(?<![\w&#])#(\d[A-Za-z0-9_-]{0,40})", re.ASCII)
_MORE_IDS = late(rf"[\"'”」]?\s{{0,3}}(?:,|、|\band\b|\bor\b|和)\s{{0,3}}{_ID_VALUE}", re.ASCII)
_LETTERS = "A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff"
_NAME_WORD = late(rf"[{_LETTERS}][{_LETTERS}\d_'’&-]*")
_TAILS = "'’&-_"
_HEADS = frozenset(".!?:;\n。！？；：\"'“‘「『《«【`(（*•-–—>")
_CHINESE_VERBS = late(
    f"(?:{'|'.join(f'{{cjk_actions.{effect}|}}' for effect in CHINESE_ACTIONS)}"
    "|{joints}|{cjk_keepers|}|把|将|在|从|给|请|文件|为|成|到|按照?|根据)+"
)
_CHINESE = late(r"[\u3400-\u9fff]+")
_CHINESE_BEHIND = late(r"(?<=[A-Za-z0-9])[,;!?]?(?=[\u3400-\u9fff])|(?<=/)[,;!?](?=[\u3400-\u9fff])")
_KINDS: tuple[guard.EntityKind, ...] = ("email", "url", "account", "phone", "key", "id", "quoted", "file", "name")
_NO_EXTRA: Mapping[str, tuple[str, ...]] = {}


def read_words(text: str, extra: Mapping[str, tuple[str, ...]] = _NO_EXTRA) -> guard.IntentAnchor:
    """The anchor that the words alone give. `extra` adds words to effects; other keys of it mean nothing.

    A clause that forbids something asks for nothing and proves no value: it is missing in `text`, `stems`, `numbers`
    and `dates`, and the parts around it are joined by a line break, so that no span crosses it.
    """
    plain, things, bare, ruled = _parsed(text)
    hidden = [t for t in things if t.entity.kind not in ("name", "id")]
    people = [t for t in hidden if t.entity.kind in ("email", "phone")]
    places = [t for t in hidden if t.entity.kind not in ("email", "phone", "quoted")]
    said = _masked(
        _masked(plain, people),
        [*map(_without_verb, places), *(m.span() for m in phrase("to_place").finditer(bare))],
        "|",
    )
    asked: set[Effect] = {
        "read",
        *effects_in(_masked(said, ruled.negated, " "), extra, ordered=True),
    }  # what is written to a place is not a message
    if _asks_to_write_to(_masked(bare, ruled.negated, "|"), things):
        asked.add("communicate")
    # what chooses between asking and refusing (section 5.3)
    ordered = _masked(bare, ruled.negated, " ")
    cues: set[guard.Cue] = {cue for cue, pattern in _CUES.items() if pattern.search(ordered)}
    sentences = (m[0] for m in _SENTENCE.finditer(ordered))
    if any(all(phrase(part).search(one) for part in _ADOPTION) and not _NO_ADOPTION.search(one) for one in sentences):
        cues.add("adoption")
    kept: list[str] = []
    at = 0
    for start, end in (*ruled.cut, (len(plain), 0)):
        kept.append(plain[at:start])
        at = max(at, end)
    before = ((thing, bisect_right(ruled.cut, thing.start, key=lambda span: span[0]) - 1) for thing in things)
    entities = [thing.entity for thing, at in before if at < 0 or thing.start >= ruled.cut[at][1]]
    return guard.IntentAnchor(
        words_sha256=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        effects_asked=frozenset(asked),
        entities=tuple({(one.kind, one.norm): one for one in reversed(entities)}.values())[::-1],
        cues=frozenset(cues),
        dates=tuple(dict.fromkeys(day for part in kept for day in dates_of(part))),
        numbers=frozenset(number for part in kept for number in numbers_of(part)),
        stems=stems(word for part in kept for word in _WORD.findall(part.casefold())),
        text="\n".join(part for part in map(normal_text, kept) if part),
        constraints=guard.ConstraintSet(ruled.constraints),
        clauses=clauses_of(plain, _masked(plain, map(_without_verb, things)), ruled.cut),
    )


def with_constraints(
    anchor: guard.IntentAnchor, words: str, reply: Mapping[str, object]
) -> tuple[guard.IntentAnchor, int]:
    """The anchor with the constraints of a reply that fits its schema, and how many of them do not stand in the words.

    Each comes once, also where the model has read earlier words before.
    """
    plain, _, _, ruled = _parsed(words)
    said, whole = normal_text(_masked(plain, ruled.negated, "|")), normal_text(words)
    effects = set(anchor.effects_asked)
    known = anchor.constraints.constraints
    number = sum(one.constraint_id.startswith(BY_MODEL) for one in known)
    before = {(one.constraint_type, one.condition) for one in known if one.constraint_id.startswith(BY_MODEL)}
    new: list[guard.SecurityConstraint] = []
    dropped = 0
    for at, one in enumerate(cast("list[Mapping[str, object]]", reply["constraints"]), 1):  # as the schema has it
        kind = cast("guard.ConstraintType", one["constraint_type"])
        said_of = cast("Mapping[str, Any]", one["condition"])  # Any: each field has a type of its own
        given: dict[str, Any] = {name: said_of.get(name) for name in ("effect", "max_amount", "max_count")}
        given |= {name: tuple(said_of.get(name) or ()) for name in TARGETS}
        condition = guard.Condition(**given)
        quote = normal_text(str(one["quote"]))
        stands = all(one.strip() and holds(whole, normal_text(one)) for name in TARGETS for one in given[name])
        # what is always asked for is not forbidden as a whole
        says_something = replace(condition, effect=None) != guard.Condition() or condition.effect not in (None, "read")
        is_quoted = len(quote) >= 3 and holds(said, quote)  # noqa: PLR2004  # fewer characters say nothing
        is_open = condition.effect is None or bool(condition.forbidden_targets) or not is_quoted
        if not stands or not says_something or (kind == "allow" and is_open):
            dropped += 1
            continue
        if kind == "allow" and condition.effect is not None:
            effects.add(condition.effect)
        if (kind, condition) not in before:
            told = str(one.get("description") or one["quote"])[:200]
            name = f"{BY_MODEL}{number + len(new) + 1 if before else at}"
            new.append(guard.SecurityConstraint(name, kind, f"as a model reads the words: {told}", condition))
    joined = guard.ConstraintSet((*known, *new), "merged")
    made = replace(anchor, effects_asked=frozenset(effects), constraints=joined, made_by="rules and model")
    return made, dropped


def with_sketch(anchor: guard.IntentAnchor, reply: Mapping[str, object]) -> guard.IntentAnchor:
    """The anchor with the sketch of a reply that fits its schema; without a step there is none."""
    given = cast("list[Mapping[str, object]]", reply["steps"])  # as the schema has it
    if not given:
        return anchor

    def capabilities(step: Mapping[str, object], name: str) -> tuple[guard.Capability, ...]:
        return tuple(dict.fromkeys(cast("list[guard.Capability]", step.get(name) or ())))

    steps = tuple(
        guard.AbstractStep(
            f"s{number}",
            str(one["step_type"])[:80],
            str(one.get("description") or "")[:200],
            capabilities(one, "allowed_capabilities"),
            capabilities(one, "forbidden_capabilities"),
        )
        for number, one in enumerate(given, 1)
    )
    return replace(anchor, sketch=guard.AbstractSketch((*steps, RESPOND)), made_by="rules and model")


def _parsed(text: str) -> tuple[str, tuple[Named, ...], str, Rules]:
    """The text as NFKC without format characters, what it names, the text with that masked, and its rules.

    Of a text that is too long both ends are read.
    """
    given = _ends(text)
    full = without_format(given)
    plain = _ends(full)  # one character may stand for many
    things = _things(plain)
    bare = _masked(plain, [t for t in things if t.entity.kind not in ("name", "id")])
    return plain, things, bare, read_rules(bare, things, plain, is_whole=(given, plain) == (text, full))


def _ends(text: str) -> str:
    return text if len(text) <= MOST_READ else f"{text[: MOST_READ // 2]}\n{text[-MOST_READ // 2 :]}"


def _asks_to_write_to(text: str, things: Sequence[Named]) -> bool:
    """Whether a message to an address is asked for: "write (a line) to ann@x.org", and nothing between or joined to it.

    What is written down for or about an address is not a message to it; whatever else it may be is a question.
    """
    ends: dict[int, set[int]] = {}
    for thing in things:
        ends.setdefault(thing.start, set()).add(thing.end)
    addresses = {thing.start: thing.end for thing in things if thing.entity.kind == "email"}
    return any(
        ends.get(at) == {addresses.get(at)} and phrase("after_address").match(text, addresses[at]) is not None
        for at in (m.end() for m in phrase("message_to").finditer(text))
    )


def _masked(text: str, spans: Iterable[Named | Span], sign: str = MASK) -> str:
    """The text with the spans overwritten; every other character keeps its place."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted((s.start, s.end) if isinstance(s, Named) else s for s in spans):
        if end > at:
            begin = max(start, at)
            pieces += (text[at:begin], sign * (end - begin))
            at = end
    return "".join((*pieces, text[at:]))


def _things(text: str) -> tuple[Named, ...]:
    """What a text names, in the order in which it stands there; a quoted span may hold others."""
    hard: list[Named] = []
    for one in hard_tokens(text):
        goes_on = _CHINESE_BEHIND.search(one.text) if one.kind == "url" else None  # no space says that it is over
        own = one.text[: goes_on.start()] if goes_on else one.text
        hard.append(_entity(own, one.kind, one.start, norm_of(own) if goes_on else one.norm))
    found = [*hard, *_files(_masked(text, hard))]
    rest = _masked(text, found)
    labelled: list[Named] = []
    for m in (*_ID.finditer(rest), *_NUMBER_SIGN.finditer(rest)):
        more: re.Match[str] | None = m
        while more is not None:
            labelled.append(_entity(more[1], "id", more.start(1)))
            more = _MORE_IDS.match(rest, more.end())
    quotes = (_entity(m[1], "quoted", m.start(1)) for pattern in _QUOTES for m in pattern.finditer(text))
    found += [*labelled, *_names(_masked(rest, labelled)), *quotes]
    return tuple(sorted(found, key=lambda one: (one.start, -one.end)))


def _entity(text: str, kind: str, start: int, norm: str = "") -> Named:
    known: guard.EntityKind = kind if kind in _KINDS else "key"  # a hard token is of no other kind
    return Named(guard.Entity(text, known, norm or normal_text(text)), start, start + len(text))


def _without_verb(thing: Named) -> Named | Span:
    """A file without the Chinese that stands before it: no space says where a verb ends and a name begins."""
    m = _CHINESE.match(thing.entity.text)
    return (thing.start + m.end(), thing.end) if m and thing.entity.kind == "file" else thing


def _files(text: str) -> Iterator[Named]:
    for run in _PATH.finditer(text):
        if "." not in run[0]:
            continue
        start = run.start()
        glued_to = () if run[0].isascii() else _FILE_ENDS.finditer(text, *run.span())
        for end in (*(m.end() for m in glued_to), run.end()):
            if m := _FILE.match(text, start, end):
                yield _entity(m[1], "file", start)
                glued = _CHINESE_VERBS.match(m[1])  # no space says where a Chinese verb ends and the name begins
                if glued is not None and glued.end() < len(m[1]):
                    yield _entity(m[1][glued.end() :], "file", start + glued.end())
            start = end


def _names(text: str) -> Iterator[Named]:
    """Runs of capitalised words, without those at their head that are capitalised only for where they stand."""
    run: list[re.Match[str]] = []
    for m in _NAME_WORD.finditer(text):
        if not run and not m[0][0].isupper():
            continue
        follows = bool(run) and text[run[-1].end() : m.start()].strip(" \t") == "" and len(run) < MOST_NAME_WORDS
        if not follows or run[-1][0].rstrip(_TAILS).endswith(("'s", "’s")):
            yield from _name(text, run)
            run = []
        if m[0][0].isupper() or (run and m[0] in word_set("name_links")):
            run.append(m)
        else:
            yield from _name(text, run)
            run = []
    yield from _name(text, run)


def _name(text: str, run: list[re.Match[str]]) -> Iterator[Named]:
    while run and run[-1][0] in word_set("name_links"):
        run = run[:-1]
    if run and (_is_head(text, run[0].start()) or all(_is_common(word[0]) for word in run)):
        while run and _is_common(run[0][0]):
            run = run[1:]
    if run:
        start = run[0].start()
        name = text[start : run[-1].end()].rstrip(_TAILS).removesuffix("'s").removesuffix("’s").rstrip(_TAILS)
        is_short = len(name) == LEAST_NAME - 1 and name[1].islower() and not _is_head(text, start)  # "Bo", not "AI"
        if len(name) >= LEAST_NAME or is_short:
            yield _entity(name, "name", start)


@lru_cache(maxsize=4096)
def _is_common(word: str) -> bool:
    """Whether a word, or it without what an apostrophe adds, is one that is capitalised by custom, or an action."""
    said = {stem(word), *stems(word.lower().replace("’", "'").split("'")[:1])}
    return not said.isdisjoint(stems_of("openers", "light_verbs", "money_nouns", "keepers")) or any(
        one in rows("actions") for one in said
    )


def _is_head(text: str, start: int) -> bool:
    """Whether a word stands where any word has a capital."""
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    return start == 0 or text[start - 1] in _HEADS

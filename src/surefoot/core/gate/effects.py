"""What words and tools do, a tool by its declaration or name. Source: spec/guard.md, sections 4.3, 4.4 and 5.2."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, cast

from surefoot.core.gate.roles import role_of_name
from surefoot.core.text.look import in_full, is_near, skeleton
from surefoot.core.text.words import late, phrase, rows, stem, stems, stems_of, stems_of_name, word_set, words_of_name
from surefoot.types.dataclass import dataclass
from surefoot.types.rules import Role
from surefoot.types.tools import Effect, ToolSpec

EFFECTS: tuple[Effect, ...] = ("read", "delete", "transact", "communicate", "write")
"""The effects, in the order in which they are tried for one word; of those that change something, strongest first."""

TRANSACT: frozenset[Effect] = frozenset({"transact"})
CHINESE_ACTIONS: Mapping[Effect, re.Pattern[str]] = {e: late(f"{{cjk_actions.{e}|}}") for e in EFFECTS}

_CHINESE: Mapping[Effect, re.Pattern[str]] = {
    **CHINESE_ACTIONS,
    "communicate": late("{cjk_actions.communicate|}|{cjk_phrases.communicate}"),
}
_PHRASES: Mapping[Effect, re.Pattern[str]] = {
    effect: late(rf"\b(?:{{phrases.{effect}}})(?!\w)", re.IGNORECASE) for effect in EFFECTS if effect != "read"
}
_CHINESE_MONEY = late("{cjk_money|}")
_ENGLISH = late(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_CJK = late(r"[\u3400-\u9fff]")
_SET_PHRASE = late(r"\b(e)-(?=mail)|\bin\s+order\s+(?=to\b|that\b)", re.IGNORECASE)
_NO_CHINESE_ORDER = late(
    "{cjk_in_progress}(?:" + "|".join(f"{{cjk_actions.{e}|}}" for e in EFFECTS) + ")|{cjk_compounds|}"
)
"""What is told and not asked for ("正在"), and a noun that is also a verb."""
_Rows = Mapping[str, tuple[Effect, ...]]
_NEAR = 4  # how many words after a light verb its noun is looked for


def of_word(word: str) -> frozenset[Effect]:
    """The effects that an English word of a sentence may stand for."""
    return cast("frozenset[Effect]", frozenset(rows("actions").get(stem(word), ())))  # rows are effects


def of_noun(word: str) -> frozenset[Effect]:
    """The effects of a light verb with this noun: "make a reservation", "make payments"."""
    found = cast("frozenset[Effect]", frozenset(rows("action_nouns").get(stem(word), ())))  # the same
    return found | TRANSACT if stem(word) in _said_money() else found


@cache
def _said_money() -> frozenset[str]:
    return stems_of("money_nouns") - stems_of("not_money_in_words")


def speaks_of_money(text: str) -> bool:
    """Whether a text names money or a sum of it."""
    return (
        phrase("currency_amount").search(text) is not None
        or _CHINESE_MONEY.search(text) is not None
        or not _said_money().isdisjoint(map(stem, _words(text)))
    )


def effects_in(
    text: str, extra: Mapping[str, tuple[str, ...]] | None = None, *, ordered: bool = False
) -> frozenset[Effect]:
    """The effects that a text may speak of: a coarse filter, a word anywhere in it. Light verbs alone say nothing.

    `extra` gives more words for an effect. With `ordered` a word counts only where it can be an order (section 9).
    """
    words = [word.lower() for word in _words(text)]
    said = [stem(word) for word in words]
    actions, nouns = (cast("_Rows", rows(name)) for name in ("actions", "action_nouns"))  # rows are effects
    verbs = map(stem, _ordered(_words(phrase("no_order").sub(" ", text.lower())))) if ordered else said
    found: set[Effect] = {effect for word in verbs for effect in actions.get(word, ())}
    found |= {effect for effect, pattern in _PHRASES.items() if pattern.search(text)}
    if _CJK.search(text):
        told = _NO_CHINESE_ORDER.sub(" ", text) if ordered else text
        found |= {effect for effect, pattern in _CHINESE.items() if pattern.search(told)}
    for at, word in enumerate(words):
        if (word in word_set("light_verbs") or word.endswith("ing")) and said[at] in stems_of("light_verbs"):
            found.update(effect for near in said[at + 1 : at + 1 + _NEAR] for effect in nouns.get(near, ()))
    for effect in EFFECTS if extra else ():
        for word in (extra or {}).get(effect, ()):
            is_english = _ENGLISH.fullmatch(word)
            if stem(word) in said if is_english else word.strip() and word.casefold() in text.casefold():
                found.add(effect)
    if found & {"write", "communicate"} and speaks_of_money(text):
        found.add("transact")
    return frozenset(found)


def _ordered(words: Sequence[str]) -> Iterator[str]:
    """The words that can be orders by their form: "send", "sending", and "sent" only where something is to be sent."""
    last = -_NEAR - 1
    for at, word in enumerate(words):
        last = at if word in word_set("passive") else last
        if is_base_form(word) or word.endswith("ing") or at - last <= _NEAR:
            yield word


@lru_cache(maxsize=4096)
def is_base_form(word: str) -> bool:
    """Whether the lexicon lists an action word as it stands here, in lower case."""
    return any(word in word_set(f"actions.{effect}") for effect in EFFECTS)


def phrases_at(text: str, place: int) -> frozenset[Effect]:
    """The effects of the phrases that begin at a place: "get in touch", "let Ann know"."""
    return frozenset(effect for effect, pattern in _PHRASES.items() if pattern.match(text, place))


def _words(text: str) -> list[str]:
    return _ENGLISH.findall(_SET_PHRASE.sub(r"\1", text))


@dataclass(frozen=True, slots=True)
class Guess:
    """The effect that the gate counts with; None is unknown. `own` is the class of the name, before it was raised.

    `egress`: a read that carries its arguments out of the house.
    """

    effect: Effect | None
    own: Effect | None
    egress: bool

    def classes(self, *, to_somebody: bool) -> frozenset[Effect | None]:
        """Both, and communicating for a write to somebody; what is not known to be anything may at least write."""
        found: set[Effect | None] = {self.effect, self.own, self.effect or "write"}
        if to_somebody and (self.own == "write" or self.effect is None):
            found.add("communicate")
        return frozenset(found)


def guess(spec: ToolSpec, guess: Literal["own", "all", "none"] = "own") -> Guess:
    """The effect of a tool: declared, or guessed of its name.

    An external tool's name never makes it a read, unless `guess` is "all"; an effect that annotations have raised stays
    raised. To ask an agent changes nothing: its own calls are judged, each by the same words.
    """
    if spec.delegates:
        return Guess("read", "read", egress=False)
    if spec.declared:  # what is made for people ("create_event") is asked for by either word
        made = guess != "none" and spec.effect == "communicate" and _class_of(bare_name(spec)) == "write"
        return Guess(
            spec.effect, "write" if made else spec.effect, spec.egress or (spec.effect == "read" and _has_link(spec))
        )
    raised = spec.effect if spec.effect not in ("read", "write") else None
    own = None if guess == "none" else _class_of(bare_name(spec))
    if own == "read" and spec.is_foreign and guess != "all":
        own = None
    return Guess(raised or _raised(own, spec), own or raised, spec.egress or (own == "read" and _has_link(spec)))


_SHAPES: Mapping[Effect | None, frozenset[Role | None]] = {
    "communicate": frozenset(("destination", "content")),
    "transact": frozenset(("destination", "amount", "time")),
}


def may_only_read(spec: ToolSpec, guessed: Guess) -> bool:
    """Whether a tool may do no more than read, although its name says so: a refusal rests on no such guess.

    It is our own and says nothing; or the name ends in what is only told ("order_status"), and nothing goes anywhere;
    or no parameter is what such an effect needs: somebody to write to, or a sum, a place or a day to book.
    """
    if spec.declared or spec.effect not in ("read", "write"):
        return False
    roles = {spec.roles.get(name) or role_of_name(name) for name in _parameters(spec)}
    if guessed.effect is None:
        return not spec.is_foreign
    if guessed.effect in _SHAPES and _SHAPES[guessed.effect].isdisjoint(roles):
        return True
    name = bare_name(spec)
    is_told = not stems_of("names.told_of").isdisjoint(map(stem, words_of_name(name)[-1:])) or phrase(
        "cjk_told_of", is_last=True
    ).search(name)
    return bool(is_told) and "destination" not in roles


def _has_link(spec: ToolSpec) -> bool:
    """Whether a parameter is called like a link, and not declared to be something else than a destination."""
    return any(
        spec.roles.get(name, "destination") == "destination"
        and not stems_of_name(name).isdisjoint(stems_of("names.link"))
        for name in _parameters(spec)
    )


_JOINTS = frozenset(("and", "or", "then"))


def _class_of(name: str) -> Effect | None:
    """The strongest of what a name joins by "and", "or", "then"; of each part the first word that is in a class.

    Behind the first joint a plural says what it is about, and not what is done. What runs something given to it may do
    anything, and so is not a read.
    """
    words, found = words_of_name(name), set[Effect]()
    is_new = is_first = True
    for word in words:
        if word in _JOINTS:
            is_new, is_first = True, False
        elif is_new and (is_first or not word.endswith("s") or stem(word) == word):
            known, is_chinese = rows("actions", "name_actions").get(stem(word), ()), _CJK.search(word)
            said: list[Effect] = [e for e in EFFECTS if e in known or (is_chinese and _CHINESE[e].search(word))]
            found.update(said[:1])
            is_new = not said
    if found - {"read"}:
        return next(effect for effect in EFFECTS if effect in found and effect != "read")
    return "read" if found and stems_of("names.run").isdisjoint(stems(words)) else None


def bare_name(spec: ToolSpec) -> str:
    """The name that a tool has on its server, without the server's own name before it."""
    return spec.name.removeprefix(f"{spec.server}__") if spec.server else spec.name


def _raised(own: Effect | None, spec: ToolSpec) -> Effect | None:
    """The class of a name with what else it says: money makes it a payment, people and a destination a message."""
    words = words_of_name(bare_name(spec))
    if own in ("write", "communicate") and any(
        stem(word) in stems_of("money_nouns") or _CHINESE_MONEY.search(word) for word in words
    ):
        return "transact"
    if own == "write" and not stems_of("people_nouns").isdisjoint(map(stem, words)):
        is_sent = any(spec.roles.get(name, role_of_name(name)) == "destination" for name in _parameters(spec))
        return "communicate" if is_sent else own
    return own


def is_called_directory(spec: ToolSpec) -> bool:
    """Whether a tool is called like one that looks people or accounts up, and not like one that gives texts."""
    said = stems_of_name(bare_name(spec))
    return not said.isdisjoint(stems_of("names.directory")) and said.isdisjoint(stems_of("names.written"))


def _parameters(spec: ToolSpec) -> tuple[str, ...]:
    properties = spec.parameters.get("properties")
    return tuple(cast("Mapping[str, object]", properties)) if isinstance(properties, Mapping) else ()  # JSON: text keys


def lookalikes(tools: Sequence[ToolSpec]) -> tuple[dict[str, str], dict[str, str]]:
    """The foreign tools to be hidden, and those to be asked about, by name with the reason in words.

    One that looks like the developer's own is hidden; two of different servers are both asked about. Names are compared
    with and without the server before them, by skeleton and by one edit. Those of one server are not: a likeness gains
    it nothing, and honest ones have `get_item` beside `get_items`. What a person has declared was looked at.
    """
    groups: defaultdict[str, dict[str, ToolSpec]] = defaultdict(dict)
    for spec in tools:
        for text in map(skeleton, {spec.name, bare_name(spec)}):
            for key in (text, *(text[:at] + text[at + 1 :] for at in range(len(text)))):  # shared within one edit
                groups[key][spec.name] = spec
    hidden: dict[str, str] = {}
    asked: dict[str, str] = {}
    for group in groups.values():
        own = [spec for spec in group.values() if not spec.is_foreign]
        served = [spec for spec in group.values() if spec.is_foreign]
        for spec in served:
            if spec.declared or spec.name in hidden:
                continue
            if near := _near(spec, own):
                hidden[spec.name] = f"it looks like the developer's own tool {in_full(near)}"
            elif spec.name not in asked and (near := _near(spec, served)):
                asked[spec.name] = f"the tool {in_full(spec.name)} looks like {in_full(near)} of another server"
    return hidden, {name: why for name, why in asked.items() if name not in hidden}


def _near(spec: ToolSpec, others: Sequence[ToolSpec]) -> str:
    """The name of the first of them that it can be mistaken for, and that is of another party; "" for none."""
    names = {spec.name, bare_name(spec)}
    for one in others:
        is_other = not one.is_foreign or one.server != spec.server
        if is_other and any(is_near(a, b) for a in (one.name, bare_name(one)) for b in names):
            return one.name
    return ""

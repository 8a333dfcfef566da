"""How texts are compared: normal forms, whole words, what is drawn alike or not at all, and which errors are the same.

A value is compared only whole: a name inside a longer word, a host inside a longer host prove nothing. Two texts look
alike when they have one skeleton: compatibility forms, letters of other scripts that are drawn the same, digits that
stand for letters, marks and separators taken away. Source: spec/guard.md, sections 4.4 and 4.5; the idea of a skeleton:
Unicode Technical Standard 39, section 4.

Of an error, what changes from one try to the next is masked, numbers count, then letters are compared: a loop hides
behind times, ids and addresses, which differ each time; progress hides in a long text of which one number changed.
Every pattern for that takes linear time: none can start a second scan inside what a first one has gone through, and it
begins with a literal or a class where it can. Source: spec/primitives.md, 2.3.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import cast
from unicodedata import normalize

from surefoot.core.text.words import late, table

_CJK = late(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_DOT = late(r"(?<=[A-Za-z0-9-])[。．｡](?=[a-z]{2,24}(?![A-Za-z0-9]))")
"""A full stop of another script that is read as the dot of a host."""
_JOINTS = frozenset("-./\\@+%~")
_SIGNS = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "3": "e", "5": "s", "$": "s"})
_SEPARATORS = str.maketrans("", "", "_-. \t\n")
SHOWS_NOTHING = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
"""Letters and marks that are counted as printable and show nothing: fillers, joiners, variation selectors."""
_LEAST_NEAR = 5
"""Letters below which names that differ by one are simply different."""


def without_format(text: str) -> str:
    """The text in NFKC, without format characters."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKC", text)
    hidden = {ord(c): None for c in set(plain) if unicodedata.category(c) == "Cf"}
    return plain.translate(hidden) if hidden else plain


def folded(text: str) -> tuple[str, Sequence[int]]:
    """A text as what opens or pays reads it: in forms of ASCII, nothing hidden; and each place, if some are gone."""
    signs: dict[str, str] = {}  # the sign of ASCII for which a character stands, "" for one that does not show
    for c in filter(lambda c: not c.isascii(), set(text)):
        plain, category = unicodedata.normalize("NFKC", c), unicodedata.category(c)
        signs[c] = plain if len(plain) == 1 and plain.isascii() else c
        if category in ("Pd", "Zs") or c in "\u2212\u2043":
            signs[c] = " " if category == "Zs" else "-"
        elif category == "Cf":
            signs[c] = ""
    folded = _DOT.sub(".", text.translate({ord(c): sign for c, sign in signs.items() if sign}))
    hidden = frozenset(c for c, sign in signs.items() if not sign)
    if not hidden:
        return folded, ()
    places = [at for at, c in enumerate(text) if c not in hidden]
    return "".join(folded[at] for at in places), places


def normal_text(text: str) -> str:
    """A text as texts are compared: NFKC, no format characters, casefold, single spaces, outer quotes off."""
    if not text.isascii():
        text = without_format(text)
    return " ".join(text.casefold().split()).strip("\"'`“”‘’「」『』《》 ")


def hides(text: str) -> bool:
    """Whether a text holds characters that do not show."""
    return not text.isascii() and any(unicodedata.category(c) == "Cf" for c in text)


def is_chinese(text: str) -> bool:
    """Whether a text is all letters of a script without spaces."""
    return bool(text) and all(c.isalnum() and _CJK.match(c) for c in text)


def holds(text: str, part: str) -> bool:
    """Whether `part` stands in `text` in whole words; both in their normal form. Never inside a word."""
    return place_in(text, part) >= 0


def place_in(text: str, part: str) -> int:
    """Where `part` first stands in `text` in whole words, as in `holds`; -1 where it does not."""
    for at in found_at(text, part):
        end = at + len(part)
        if (not at or _is_edge(text[at - 1], part[0])) and (end == len(text) or _is_edge(text[end], part[-1])):
            return at
    return -1


def holds_token(text: str, part: str) -> bool:
    """Whether `part` stands in `text` in whole words, not as a piece of a path, a file name or a hyphenated word."""
    return next(places_in(text, part), -1) >= 0


def places_in(text: str, part: str) -> Iterator[int]:
    """Where `part` stands so in `text`."""
    for at in found_at(text, part):
        end = at + len(part)
        if _is_end(text[max(0, at - 2) : at][::-1], part[0]) and _is_end(text[end : end + 2], part[-1]):
            yield at


def found_at(text: str, part: str) -> Iterator[int]:
    """Where `part` stands in `text` at all, also inside of words; nowhere if it is empty."""
    at = text.find(part) if part else -1
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _is_end(outside: str, inside: str) -> bool:
    """Whether a token ends between what is inside and what follows outside, read away from it."""
    if not outside or not _is_edge(outside[0], inside):
        return not outside
    is_joined = outside[0] in _JOINTS and outside[1:].isalnum()
    return not is_joined and not (inside in _JOINTS and outside[0].isalnum() and not _CJK.match(outside[0]))


def _is_edge(outside: str, inside: str) -> bool:
    """Whether a word ends between two neighbouring characters. Chinese has no such ends, so each character is one."""
    if not (outside.isalnum() or outside == "_") or not (inside.isalnum() or inside == "_"):
        return True
    return bool(_CJK.match(outside) or _CJK.match(inside))


@cache
def _confusables() -> Mapping[int, str]:
    """What each character is drawn like, by the table of UTS 39; some are of ASCII themselves ("1" like "l")."""
    lines = (line.partition(":") for line in cast("str", table("lookalikes")["confusables"]).split("\n"))
    drawn = (("".join(chr(int(code, 16)) for code in to.split("+")), codes) for to, _, codes in lines if to)
    return {int(code, 16): to for to, codes in drawn for code in codes.split()}


_ASCII = 128


@cache
def _mistaken() -> Mapping[int, str]:
    """The table without ASCII and with the letters that it keeps apart."""
    more = cast("Mapping[str, str]", table("lookalikes")["more"])
    others = {int(code, 16): letter for letter, codes in more.items() for code in codes.split()}
    return {code: to for code, to in _confusables().items() if code >= _ASCII} | others


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    """A text with each letter as it is drawn: without marks and format characters, other scripts as Latin.

    Capitals are looked up before they are made small: a capital may be drawn like another letter than its small one.
    """
    plain = text
    for _ in range(0 if text.isascii() else 2):
        split = unicodedata.normalize("NFKD", plain).translate(_mistaken())
        split = unicodedata.normalize("NFKD", split.casefold())
        plain = "".join(c for c in split if unicodedata.category(c) not in ("Cf", "Mn"))
    return plain.casefold()


def skeleton(text: str) -> str:
    """What is left of a name when all that the eye may miss is taken away."""
    return _letters(text).translate(_SIGNS).replace("rn", "m").replace("vv", "w").translate(_SEPARATORS)


def without_accents(text: str) -> str:
    """A text as people type it whose keyboards have no accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) != "Mn").casefold()


def is_twin(one: str, other: str) -> bool:
    """Whether two different texts are drawn alike through letters of other scripts or invisible ones.

    What differs within ASCII alone ("1" for "l") and separators are no twins: accounts and ids differ by just these.
    """
    short, long = sorted((len(one), len(other)))
    if (one.isascii() and other.isascii()) or long > _MOST_WIDER * short:
        return False
    if _pairs(one.casefold()) == _pairs(other.casefold()):
        return False
    return _pairs(_letters(one)) == _pairs(_letters(other))


_MOST_WIDER = 8


def _pairs(text: str) -> str:
    """A small text with one sign for those of ASCII that are drawn alike."""
    return text.replace("rn", "m").translate(_LIKE_L)


_LIKE_L = str.maketrans("1|i0", "lllo")


def is_near(one: str, other: str) -> bool:
    """Whether two names can be mistaken for each other: one skeleton, or one letter apart."""
    short, long = sorted((skeleton(one), skeleton(other)), key=len)
    if short == long or len(short) < _LEAST_NEAR or len(long) - len(short) > 1:
        return short == long
    same = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    return short[same + 1 :] == long[same + 1 :] if len(short) == len(long) else short[same:] == long[same + 1 :]


def in_full(text: str) -> str:
    """A text on one line with nothing hidden: invisible and control characters are spelled out, so are look-alikes.

    A letter that is not ASCII in a text that is otherwise ASCII is told by its code point. A run of characters that do
    not show is told by its length, so that it pushes nothing out of sight.
    """
    if text.isascii() and text.isprintable() and _GAP not in text:
        return text
    has_ascii_letters = any(c.isascii() and c.isalpha() for c in text)
    parts: list[str] = []
    at = 0
    for run in _REPEATED.finditer(text):
        character, times = run[1], len(run[0])
        spelled = _spelled(character, in_ascii=has_ascii_letters)
        if spelled != character or character == " ":
            parts += [_spelled(c, in_ascii=has_ascii_letters) for c in text[at : run.start()]]
            parts.append(f"<{times} spaces>" if character == " " else f"<{times} × {spelled[1:-1]}>")
            at = run.end()
    parts += [_spelled(c, in_ascii=has_ascii_letters) for c in text[at:]]
    return "".join(parts)


_GAP = " " * 8
_REPEATED = late(r"(.)\1{7,}", re.DOTALL)
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as nothing."""


def _spelled(character: str, *, in_ascii: bool) -> str:
    if character.isascii():
        return character if character.isprintable() else f"<{ord(character):02X}>"
    category = unicodedata.category(character)
    if category[0] in "CZ" or category == "Mn" or character in _BLANK:
        return f"<U+{ord(character):04X}>"
    if in_ascii and category[0] in "LN":  # it may be read as a letter of ASCII: by the table, or its script has many
        drawn = _confusables().get(ord(character), "")
        is_wide = "\uff00" <= character <= "\uffef"
        of_likes = unicodedata.name(character, "").split(" ")[0] in ("CYRILLIC", "GREEK")
        if of_likes or (not is_wide and drawn.isascii() and drawn.isalnum()):
            return f"{character}<U+{ord(character):04X}>"
    return character


_LONGEST_READ = 8_000
_LONGEST_KEPT = 1_000
"""Characters that are read, and kept, of either end of an error."""

_ROUNDING = 1e-9

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")

_NAME_END = r"(?![0-9A-Za-z_])"
_FIRST_DIGIT = r"[0-9](?<![0-9A-Za-z_.][0-9])"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_ZONE = r"(?: ?(?:[AaPp][Mm]|UTC|GMT|Z)\b)?(?: ?[+-][0-9]{2}:?[0-9]{2}\b)?"
_SECONDS = rf":[0-5][0-9](?:[.,][0-9]+)?{_ZONE}"
_TIME = rf"[0-2]?[0-9]:[0-5][0-9](?:{_SECONDS})?"
_DATE = (
    r"(?:[0-9]{3}([-/.])[0-9]{1,2}\1[0-9]{1,2}(?![0-9])"  # 2026-08-20
    r"|[0-9]?([-/.])[0-9]{1,2}\2[0-9]{4}(?![0-9])"  # 20.08.2026
    rf"|[0-9]?[ /-]{_MONTH}[ /-][0-9]{{4}}(?![0-9])"  # 20/Aug/2026
    r"|[0-9]{3}年[0-9]{1,2}月[0-9]{1,2}日"
    r"|[0-9]{7}(?=T[0-9]{4}))"  # 20260820T101112Z
    rf"(?:[T :,]{{1,2}}(?:{_TIME}|[0-9]{{4,6}}Z?\b))?{_ZONE}"
)
_STAMP = re.compile(
    rf"{_FIRST_DIGIT}(?:{_DATE}"
    rf"|[0-9]?(?<!:[0-9])(?<!:[0-9]{{2}}):[0-5][0-9](?:{_SECONDS}| ?[AaPp][Mm]\b)"
    # without seconds it is a time only where it cannot be a line and a column
    rf"|[0-9](?<![:(][0-9]{{2}})(?<!line [0-9]{{2}})(?<=[01][0-9]|2[0-3]):[0-5][0-9](?![0-9:]){_ZONE})"
)
_NAMED_DATE = re.compile(rf"{_MONTH} {{1,2}}[0-9]{{1,2}}(?![0-9])(?:,? [0-9]{{4}}(?![0-9]))?(?:,? {_TIME})?")
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? (?=<time>)")

_UNIT = (  # the longest first: the first that fits is taken for good
    r"(?:(?:milli|micro|nano)?seconds?|minutes?|hours?|days?|msecs?|secs?|mins?|hrs?|ns|us|µs|μs|ms|s)"
)
_DURATION = re.compile(
    rf"{_FIRST_DIGIT}[0-9]*+(?:\.[0-9]+)?"
    rf"(?:(?>(?: ?{_UNIT}|[mhd])(?:[0-9]+(?:\.[0-9]+)?(?:{_UNIT}|[mhd]))*){_NAME_END}"
    rf"| ?(?:毫秒|微秒|纳秒|秒钟?|分钟|小时|天))"
)
_DIGITS_OF_UUID = re.compile(r"[0-9]{8}-[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{12}(?![0-9])")
_ADDRESS = re.compile(r"0[xX][0-9A-Fa-f]+")
_HEX = re.compile(r"[0-9A-Fa-f-]{6,}")
_LEAST_HEX = 6
_LONG_NUMBER = re.compile(r"[0-9]{7,}(?:\.[0-9]+)?")
_PORT = re.compile(r":(?<=[\w\]]:)([0-9]{5})(?![0-9]|:[0-9])")
_EPHEMERAL_PORTS = range(32_768, 65_536)
_TEMPORARY_PATH = re.compile(
    r"/(?<![\w.~-]/)(?:private/)?(?:tmp|var/tmp|var/folders|dev/shm)/[^\s'\"`:,;()\[\]<>]+", re.IGNORECASE
)
_TEMPORARY_PATH_ON_WINDOWS = re.compile(
    r"[A-Z]:[\\/](?:[^\s:'\"<>|]*[\\/])?te?mp[\\/][^\s:'\"<>|,;()\[\]]+", re.IGNORECASE
)
_COUNTER = re.compile(r"(?<![A-Za-z])(attempt|retry|try|pid)(?: (?:no\.?|number))?\W{0,4}[0-9]+", re.IGNORECASE)
_HAS_DIGIT = re.compile(r"[0-9]")
_NUMBER = re.compile(r"(?<!\w)-\d+(?:\.\d+)?|\d+(?:\.\d+)?")


def similarity(a: str, b: str) -> float:
    """1 − Levenshtein distance / longer length, over code points; 1.0 for two empty texts. Costs len(a) × len(b)."""
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - a run without errors does not pay for the import

    return Levenshtein.normalized_similarity(a, b)


def normal(error: str) -> str:
    """What is compared of an error: masked, on one line, at most 2,000 characters. Costs at most some milliseconds."""
    return _ends(masked(_ends(error, _LONGEST_READ)), _LONGEST_KEPT)


def likeness(a: str, b: str, threshold: float) -> float | None:
    """How alike two normal errors are, if they are the same error: at or above the threshold and with equal numbers."""
    if a == b:
        return 1.0
    longer = max(len(a), len(b))
    most = int((1 - threshold) * longer + _ROUNDING)
    if abs(len(a) - len(b)) > most or _NUMBER.findall(a) != _NUMBER.findall(b):
        return None
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - as above

    distance = Levenshtein.distance(a, b, score_cutoff=most)
    return None if distance > most else 1 - distance / longer


def masked(text: str) -> str:
    """The text in NFC on one line without colours, and what changes from try to try replaced by its kind."""
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = normalize("NFC", text)
    text = " ".join(text.split())
    if "/" in text:
        text = _TEMPORARY_PATH.sub("<path>", text)
    if ":\\" in text or ":/" in text:
        text = _TEMPORARY_PATH_ON_WINDOWS.sub("<path>", text)
    if not _HAS_DIGIT.search(text):
        return text
    # order is meaning: a date is not an id, an id no long number, and a time no duration
    text = _NAMED_DATE.sub("<time>", _STAMP.sub("<time>", text))
    if "<time>" in text:
        text = _WEEKDAY.sub("", text)
    lower = text.lower()
    if "try" in lower or "attempt" in lower or "pid" in lower:
        text = _COUNTER.sub(r"\1 <n>", text)
    text = _ADDRESS.sub("<address>", _DIGITS_OF_UUID.sub("<id>", text))
    text = _LONG_NUMBER.sub("<number>", _DURATION.sub("<duration>", _HEX.sub(_id_masked, text)))
    return _PORT.sub(lambda match: ":<port>" if int(match[1]) in _EPHEMERAL_PORTS else match.group(), text)


def _id_masked(match: re.Match[str]) -> str:
    """A run of hex digits and dashes with its id masked: a whole word of six digits, a letter and a figure among them.

    The run may begin or end inside a word ("failED-9f2c1a"); that part of it is not an id.
    """
    text, start, end = match.string, match.start(), match.end()
    run = match.group()
    head = tail = ""
    if start and text[start - 1].isalnum():
        head, dash, run = run.partition("-")
        head += dash
    if end < len(text) and text[end].isalnum():
        run, dash, tail = run.rpartition("-")
        tail = dash + tail
    bare = run.strip("-")
    digits = bare.replace("-", "")
    if len(digits) < _LEAST_HEX or digits.isalpha() or digits.isdecimal():
        return match.group()
    return head + run.replace(bare, "<id>") + tail


def _ends(text: str, most: int) -> str:
    return text if len(text) <= 2 * most else text[:most] + text[-most:]

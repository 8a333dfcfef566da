"""Words as a search compares them: folded, and related to others by their beginning or as parts of a compound.

Endings of plural and verb are folded (bridge, bridges; open, opened): such words are the same. Words that differ only
in their last letters (rebuild, rebuilt; write, written), longer forms (construct, construction) and parts of compounds
(bridge, footbridge) are related, which counts less. Chinese, Japanese and Korean runs are overlapping pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

MAX_WORDS = 32
"""Words of a query that count."""
LONGER, FORM, PART = 0.7, 0.6, 0.5
"""What a related word counts, where the same word counts one."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_ASKS_NUMBER = re.compile(
    r"\b(when|year|date|time|how (many|much|old|long|far|tall|high|big|large|often)|number|amount|price|cost|total)\b"
    r"|几|多少|何时|什么时候|哪年|哪一年|日期|多[长高大远久]",
    re.IGNORECASE,
)
_COMMON = frozenset(
    re.findall(
        r"\S+",
        """a about am an and any are as at be been by can could did do does for from had has have he her his how i if in
        is it its me my of on or our she should so some that the their them there they this to was we were what when
        where which who whom whose why will with would you your please tell find show give look up
        的 了 是 在 吗 呢 和 与 什么 多少 哪个 谁""",
    )
)
_KINDS = re.findall(r"\S+", "year date day time number amount name place person people note file")
"""What is looked for: such words seldom stand beside the answer, so they count half."""
_SHORTEST = 4
"""Letters that a word, and the beginning it shares with another, must have; a part of a compound has one more."""
_LEFT = 3
"""Letters at the end in which related words may differ."""
_SURE = 6
"""From so many shared letters on, words are related whatever their endings are."""
_ENDINGS = frozenset(
    {"", *re.findall(r"\S+", "d e n r s t al ed en er es ing ion ies ied ier ly or ors ten th ting y ty ily est ers")}
)


class Query:
    """The words of a question, folded, without those that any text holds; `weights` says how much each counts."""

    def __init__(self, text: str) -> None:
        self.asks_number = _ASKS_NUMBER.search(text) is not None
        every = [word for run in _WORD.findall(text.casefold()) for word in _parts(run)]
        telling = [word for word in every if word not in _COMMON]
        self.words = tuple(dict.fromkeys(map(fold, telling or every)))[:MAX_WORDS]
        self.weights = {word: 0.5 if word in _FOLDED_KINDS else 1.0 for word in self.words}
        pieces = {piece for word in self.words for piece in _pieces(word)}
        self.pattern = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))) or "(?!)")
        # Texts say the same words again and again.
        self.match = lru_cache(maxsize=20_000)(self._match)

    def _match(self, word: str) -> tuple[str, float] | None:
        """Which word of the query a word of a text stands for, and how well, 1.0 being the same; None for none."""
        folded = fold(word)
        if folded in self.weights:
            return folded, 1.0
        found = max(((relation(asked, folded), asked) for asked in self.words), default=(0.0, ""))
        return (found[1], found[0]) if found[0] else None


def words_of(text: str) -> Iterator[str]:
    """The words of a text in lower case, not folded; runs of Chinese, Japanese or Korean as overlapping pairs."""
    for run in _WORD.findall(text.casefold()):
        yield from _parts(run)


def fold(word: str) -> str:
    """A word without the endings of plural and verb: lighter than a stemmer, and never wrong by much."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():  # noqa: PLR2004  # "his", "bus"
        return word
    for ending, kept in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ied", "y"), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):  # noqa: PLR2004
            word = word[: -len(ending)] + kept
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":  # noqa: PLR2004  # stopped, planned
        return word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word  # noqa: PLR2004  # bridge, bridges


def relation(one: str, other: str) -> float:
    """How near two different folded words are: 0.0 when they are not related, else less than 1.0."""
    short, long = sorted((one, other), key=len)
    if len(short) < _SHORTEST or not (short.isalpha() and long.isalpha()):
        return 0.0
    if len(short) > _SHORTEST and long.startswith(_stem(short)):
        return LONGER
    shared = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    left = short[shared:], long[shared:]
    if shared >= _SHORTEST and len(left[1]) <= _LEFT and (shared >= _SURE or _ENDINGS.issuperset(left)):
        return FORM
    is_part = len(short) > _SHORTEST and len(long) - len(short) >= _LEFT and long.endswith(short)
    return PART if is_part else 0.0


def _parts(run: str) -> Sequence[str]:
    if len(run) == 1 or not "\u3040" <= run[0] <= "\uffdc":
        return (run,)
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _stem(word: str) -> str:
    """What all forms of a folded word begin with: cities and city share `cit`."""
    return word[:-1] if len(word) > 3 and word[-1] in "ye" else word  # noqa: PLR2004


def _pieces(word: str) -> tuple[str, ...]:
    """What a text must hold somewhere to hold the word or a related one: cheap to look for."""
    stem = _stem(word)
    if len(word) < _SHORTEST or not word.isalpha():
        return (stem,)
    return stem[:_SHORTEST], stem[-_SHORTEST:]


_FOLDED_KINDS = frozenset(map(fold, _KINDS))

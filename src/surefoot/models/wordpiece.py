"""WordPiece: text as the numbers that a BERT encoder reads.

Words in lower case without accents, split at blanks, punctuation and Chinese characters, each taken apart greedily into
the longest pieces that the vocabulary holds. Source: Devlin et al. 2018, the uncased tokenizer of BERT.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

PADDING, UNKNOWN, BEGIN, END = 0, 100, 101, 102
"""The numbers of `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]` in the vocabulary."""
_LONGEST_WORD = 100
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_SIGNS = frozenset("$+<=>^`|~")
"""Signs of ASCII that BERT counts as punctuation and Unicode as symbols."""


class WordPiece:
    """A tokenizer with a vocabulary: piece -> number, where a piece inside a word begins with `##`."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary

    @classmethod
    def of(cls, text: str) -> WordPiece:
        """From the text of a `vocab.txt`: a piece a line, numbered from 0."""
        return cls({piece: at for at, piece in enumerate(text.splitlines())})

    def numbers(self, text: str, most: int) -> list[int]:
        """A text as at most `most` numbers, its beginning and end included; what is too long is cut."""
        found: list[int] = []
        for word in _words(text):
            found += self._pieces(word)
            if len(found) >= most - 2:
                break
        return [BEGIN, *found[: most - 2], END]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [UNKNOWN]
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._vocabulary.get(("##" if start else "") + word[start:end])
                if number is not None:
                    break
            else:
                return [UNKNOWN]
            found.append(number)
            start = end
        return found


def _words(text: str) -> list[str]:
    return "".join(map(_spaced, unicodedata.normalize("NFD", text.lower()))).split()


@lru_cache(4096)
def _spaced(sign: str) -> str:
    """A character, alone between blanks where it is a word of its own; "" where it does not count."""
    kind = unicodedata.category(sign)
    if kind == "Mn":
        return ""
    if kind[0] == "C":
        return " " if sign in "\t\n\r" else ""
    return f" {sign} " if kind[0] == "P" or sign in _SIGNS or _CHINESE.match(sign) else sign

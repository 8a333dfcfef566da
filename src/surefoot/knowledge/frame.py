"""Quoted material in a message: blocks between marks that whoever wrote the material cannot guess.

Source: spec/primitives.md, 3.9 and 4.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

_MARK_DIGITS = 12


def mark_for(message: str, texts: Iterable[str]) -> str:
    """The mark of a message: the same on replay, and in none of the texts that it is to hold.

    `message` names it by what writers of pages do not know: the run's id, with the prefix of the message's calls.
    """
    texts = tuple(texts)
    counter = 0
    while True:
        mark = sha256(f"{message}{counter}".encode()).hexdigest()[:_MARK_DIGITS]
        if not any(mark in text for text in texts):
            return mark
        counter += 1


def framed(heading: str, text: str, mark: str) -> str:
    """A text as it stands, between a line with its heading and the mark, and one that ends it."""
    return f"--- {heading} {mark} ---\n{text}\n--- end {mark} ---"

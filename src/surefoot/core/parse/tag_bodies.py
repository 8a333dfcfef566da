"""JSON bodies between an opening and a closing tag: one call, a list, or several; the end is found by decoding.

Where a value does not decode, its strings cannot be told, so the first closing or opening tag behind it is the best
evidence of where it ends: one bad call never drops its siblings. An open payload has no such end; all the rest is in
it.
"""

from __future__ import annotations

from surefoot.core.parse.arguments import NEXT_CALL, drafts_of, faulty_body
from surefoot.core.parse.drafts import Draft, Reading
from surefoot.core.parse.json_ladder import read
from surefoot.core.parse.json_strict import NotJsonError
from surefoot.core.parse.scan import MOST_CALLS, Seeker, inside_fence, skip_blanks
from surefoot.types.dataclass import dataclass
from surefoot.types.reply import Fault, ReplyWarning


@dataclass(frozen=True, slots=True)
class Tag:
    """An opening tag and its closing tag. `payloads`: values may stand between payload markers."""

    open: str
    close: str
    payloads: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """The calls of one tag, and where the text goes on behind it."""

    drafts: tuple[Draft, ...]
    end: int


class BodyReader:
    """Reads the bodies of one reply, one tag after the other; collects their warnings."""

    def __init__(self, text: str, tag: Tag, reading: Reading) -> None:
        self._text = text
        self._tag = tag
        self._reading = reading
        self._seek = Seeker(text)
        self.warnings: set[ReplyWarning] = set()

    def counts(self, at: int) -> bool:
        """Whether the opening tag at `at` is meant as one: a body begins behind it, or its closing tag follows."""
        inside = skip_blanks(self._text, at + len(self._tag.open))
        if self._text.startswith(("{", "[", "```", self._tag.open, self._tag.close), inside):
            return True
        close = self._seek.find(self._tag.close, inside)
        return close >= 0 and not 0 <= self._seek.find(self._tag.open, inside) < close

    def read(self, at: int) -> Body:
        """The calls of the tag that opens at `at`."""
        text, tag = self._text, self._tag
        at = skip_blanks(text, at + len(tag.open))
        depth = 1
        while text.startswith(tag.open, at):
            at = skip_blanks(text, at + len(tag.open))
            depth += 1
        if depth > 1:
            self.warnings.add("repaired_tags")
        if text.startswith(tag.close, at):
            return Body((Draft(fault=Fault("empty", f"{tag.open} holds nothing")),), at + len(tag.close))
        fenced = text.startswith(("```", "~~~"), at)
        at = skip_blanks(text, inside_fence(text, at))
        close, again = self._seek.find(tag.close, at), self._seek.find(tag.open, at)
        has_end = close >= 0 and not 0 <= again < close
        limit = close if has_end else again if again >= 0 else len(text)
        if text[at : at + 1] not in ("{", "[", '"'):
            opening = min((place for sign in "{[" if (place := text.find(sign, at, limit)) >= 0), default=-1)
            if opening < 0:
                cut = not has_end and (self._reading.cut or at >= len(text))
                told = Fault(
                    "truncated" if cut else "malformed_json", f"expected a JSON object, got {text[at:limit][:60]!r}"
                )
                return Body((Draft(fault=told),), self._closed(limit, depth) if has_end else limit)
            self.warnings.add("trailing_text")
            at = opening
        drafts, at = self._values(at, limit, fenced=fenced, has_end=has_end)
        is_open = not has_end and drafts[-1].fault is not None
        return Body(drafts, at if is_open else self._closed(at, depth))

    def _values(self, at: int, limit: int, *, fenced: bool, has_end: bool) -> tuple[tuple[Draft, ...], int]:
        """The values from `at` on; of a list that does not decode as a whole, the members one by one."""
        text = self._text
        marks = (self._tag.close, "```") if fenced else (self._tag.close,)
        rules = self._reading.rules(*marks, payloads=self._tag.payloads, is_call=True)
        drafts: list[Draft] = []
        while True:
            try:
                value = read(text, at, rules)
            except NotJsonError as error:
                if text.startswith("[", at) and not error.payload:
                    at = skip_blanks(text, at + 1)
                    if text.startswith("{", at):
                        continue
                    drafts.append(faulty_body(self._text, at, error, self._reading, has_end=has_end))
                    return tuple(drafts), limit
                faulty = faulty_body(self._text, at, error, self._reading, has_end=has_end)
                drafts.append(faulty)
                if error.payload:
                    return tuple(drafts), len(text)
                following = (
                    NEXT_CALL.search(text, error.position, limit)
                    if faulty.fault and len(drafts) <= MOST_CALLS
                    else None
                )
                if following is None:
                    return tuple(drafts), limit
                at = following.end()
                continue
            drafts += drafts_of(value.value)
            if value.repaired:
                self.warnings.add("repaired_json")
            at = value.end
            following_at = at
            while text[following_at : following_at + 1] in _SEPARATORS and following_at < len(text):
                following_at += 1
            if not text.startswith(("{", "["), following_at) or len(drafts) > MOST_CALLS:
                return tuple(drafts), at
            at = following_at

    def _closed(self, at: int, depth: int) -> int:
        """Step over the end of the tag behind a value that ends at `at`; note what is amiss with it."""
        text, tag = self._text, self._tag
        at = self._after_fence(at)
        if not text.startswith(tag.close, at):
            close, again = self._seek.find(tag.close, at), self._seek.find(tag.open, at)
            if close < 0 or 0 <= again < close:
                self.warnings.add("unclosed_tag")
                return at
            if text[at:close].strip("]}) \t\r\n"):
                self.warnings.add("trailing_text")
            else:
                self.warnings.add("repaired_json")
            at = close
        at += len(tag.close)
        for _ in range(depth - 1):
            inner = skip_blanks(text, at)
            if text.startswith(tag.close, inner):
                at = inner + len(tag.close)
        doubled = skip_blanks(text, at)
        while text.startswith(tag.close, doubled):
            self.warnings.add("repaired_tags")
            at = doubled + len(tag.close)
            doubled = skip_blanks(text, at)
        return at

    def _after_fence(self, at: int) -> int:
        at = skip_blanks(self._text, at)
        return skip_blanks(self._text, at + 3) if self._text.startswith("```", at) else at


_SEPARATORS = frozenset(" \t\r\n,;]\ufeff")

"""One row of a telling, and how it is written: with whose words each part is, and nothing hidden in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from surefoot.telling.text import Line, Part, Said, Style, count, visible
from surefoot.types.attachments import Attachment
from surefoot.types.ports import Recorded

Kind = Literal[
    "head", "reasoning", "reply", "call", "verdict", "question", "result", "prefetch", "select", "plan", "limit",
    "trait", "failure", "word", "warning", "end",
]  # fmt: skip

MOST_CHARS = 65_536
"""Characters of what a row opens."""
ROW_CHARS = 2_000
"""Characters of one part of a row."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that came with a task or a result; the journal has its bytes under `digest`, which a text has not."""

    name: str
    media_type: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Details:
    """What a row opens: all of what it tells the beginning of. The journal has the whole as `blob`, where it is cut."""

    title: str
    lines: tuple[Line, ...] = ()
    blob: str = ""
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the telling of record `seq`, which was written at `at`.

    `step` is the number of the reply that it belongs to, 0 before the first; `took_s` seconds. A `folded` row is told
    only where all is told; one that is `whole` is never cut, since it is short or a person answers for it.
    """

    seq: int
    at: float
    kind: Kind
    parts: tuple[Part, ...]
    style: Style = ""
    indent: int = 0
    step: int = 0
    call_id: str = ""
    step_id: str = ""
    took_s: float | None = None
    opens: Details | None = None
    folded: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        return "".join([part.text for part in self.parts])


@dataclass(frozen=True, slots=True)
class Pen:
    """What the rows of one record have in common, and how they are written; with `is_whole` nothing is left out."""

    record: Recorded
    step: int = 0
    step_id: str = ""
    call_id: str = ""
    is_whole: bool = False

    def row(
        self,
        kind: Kind,
        *said: Said,
        style: Style = "",
        indent: int = 0,
        took_s: float | None = None,
        opens: Details | None = None,
        folded: bool = False,
        whole: bool = False,
    ) -> Row:
        """A row of these texts. What has several lines, or is too long, it opens."""
        parts: list[Part] = []
        is_all = True
        for one in said:
            text, role = (one, "runtime") if isinstance(one, str) else one
            if not whole and "\n" in text:
                is_all, text = False, text.replace("\n", " ")
            if len(text) > ROW_CHARS and not self.is_whole:
                is_all, text = False, text[: ROW_CHARS - 1] + "…"
            if text:
                parts.append(Part(visible(text), role))
        if opens is None and not is_all:
            opens = self.details("", "".join(one if isinstance(one, str) else one[0] for one in said))
        at = (self.record.seq, self.record.at)
        place = (self.step, self.call_id, self.step_id)
        return Row(*at, kind, tuple(parts), style, indent, *place, took_s, opens, folded, whole)

    def details(self, title: str, *texts: str, blob: str = "", files: Iterable[Attachment] = ()) -> Details:
        """Texts in full, as far as there is room, each with its further lines indented."""
        lines: list[Line] = []
        room = MOST_CHARS
        for text in texts:
            rows = text.strip().splitlines()
            for at, row in enumerate(rows):
                if room <= 0 and not self.is_whole:
                    lines.append(Line(f"… {count(len(rows) - at, 'more line')}", "dim"))
                    break
                shown = row if self.is_whole or len(row) <= room else row[:room] + "…"
                lines.append(Line(visible(shown), "", 2 if at else 0))
                room -= len(row) + 1
        kept = tuple(File(visible(one.name), one.media_type, one.digest, one.size or len(one.text)) for one in files)
        return Details(visible(title.replace("\n", " ")), tuple(lines), blob, kept)

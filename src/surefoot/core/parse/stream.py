"""What of a reply may be shown while it still streams: what may become a call is held back by line.

A line is shown once its beginning says that it is none of a call. From the first sign of one the rest of the reply is
held back; whoever shows it compares with what the reply, read as a whole, says. Source: spec/react.md, section 11.
"""

from __future__ import annotations

import re
from typing import Literal

from surefoot.core.parse.deliverable import DELIVERABLE
from surefoot.core.parse.marks import MARKERS, RESULT
from surefoot.core.parse.visible import END_TOKENS, REASONING_TAGS, TURN_TOKENS

_MOST_HELD = 64
"""Characters of a line's beginning, or from a bracket on, that are waited for before they are shown."""

_LEAD = r"[ \t]*+(?:(?:[-+>•#]++|\d++[.)])[ \t]++)*[*_#` \t]*+"
_LABEL = re.compile(
    rf"{_LEAD}(?:(?P<thought>thought|思考)|final[ \t_]*answer|最终答案)[ \t*_]*+[:：][ \t*_]*+", re.IGNORECASE
)
_OPENS = re.compile(
    rf"{_LEAD}(?:[{{\[]|[\w.\\]++\(|(?:(?:action|tool|function)(?:[ \t_]*(?:name|input|args|arguments))?|observation"
    r"|行动|行动输入|观察|(?:调用)?工具)[ \t*_]*+[:：]|[\w.`*]++\s*+\n\s*+\{)",
    re.IGNORECASE,
)
_BLANK_LINES = re.compile(r"(?:[ \t\r]*+\n)++")
_FENCE = re.compile(r"[ \t]*+(?P<run>`{3,}+|~{3,}+)[^\n]{0,200}+(?:\n\s*+)?")
_REASONING = re.compile(rf"<(?P<close>/?)(?P<name>{'|'.join(REASONING_TAGS)})(?:\s[^<>]{{0,200}}+)?>", re.IGNORECASE)
_MARKS = "|".join(map(re.escape, (*MARKERS, RESULT, DELIVERABLE, *END_TOKENS, *TURN_TOKENS)))
_CALL = re.compile(
    rf"{_MARKS}|<[|｜]|<\s*+/?\s*+(?:tool|function|invoke|action)[\s\w-]*+[>=]|[{{\[]\s*+[\"'{{\[]", re.IGNORECASE
)
_SIGN = re.compile(r"[<\[{\n]")


class DisplayFilter:
    """Feed it the text of a reply as it comes; it gives back the text and the reasoning that may be shown now.

    A thought and what stands in reasoning tags is reasoning. Blanks are shown with what follows them, so that what is
    shown never begins or ends in any. What depends on the chunks is only when something is shown.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: the reply begins again."""
        self._held = self._closing = self._fence = ""
        self._at = 0
        self._blank: list[str] = []
        self._mode: Literal["text", "thought", "held"] = "text"
        self._at_line = self._skips = True

    def feed(self, chunk: str) -> tuple[str, str]:
        """The text and the reasoning to show now."""
        self._held += chunk
        text: list[str] = []
        thought: list[str] = []
        while self._at < len(self._held) and self._mode != "held":
            is_thought = bool(self._closing) or self._mode == "thought"
            piece = self._piece()
            if piece is None:
                break
            if is_thought:
                thought.append(piece)
            elif piece:
                text += self._trimmed(piece)
        self._held, self._at = "" if self._mode == "held" else self._held[self._at :], 0
        return "".join(text), "".join(thought)

    def _trimmed(self, piece: str) -> list[str]:
        """The piece without the blanks at its end, which wait, and with those before it."""
        piece = piece.lstrip() if self._skips else piece
        kept = piece.rstrip()
        if not kept:
            self._blank.append(piece)
            return []
        blank, self._blank, self._skips = self._blank, [piece[len(kept) :]], False
        return [*blank, kept]

    def _piece(self) -> str | None:
        """The next piece of what is held, "" for one that is not shown; None if more is needed to say what it is."""
        if self._closing:
            return self._reasoning()
        if self._at_line:
            return self._line()
        held, at = self._held, self._at
        sign = _SIGN.search(held, at)
        if sign is None or sign.start() > at:
            return self._taken(sign.start() if sign is not None else len(held))
        self._at_line = sign.group() == "\n"
        if self._at_line or self._fence:
            return self._taken(at + 1)
        if not self._is_known(at):
            return None
        tag = _REASONING.match(held, at)
        if tag is not None and not tag["close"]:
            self._closing = f"</{tag['name']}".lower()
            self._skips = self._skips or any(self._blank)
            self._at = tag.end()
        elif tag is not None or _CALL.match(held, at) is not None:
            self._mode = "held"
        else:
            return self._taken(at + 1)
        return ""

    def _is_known(self, at: int) -> bool:
        """Whether enough stands from there on, or all of its line."""
        return len(self._held) - at >= _MOST_HELD or self._held.find("\n", at) >= 0

    def _line(self) -> str | None:
        """The beginning of a line: a label is stepped over, and what may open a call ends what is shown."""
        held, at = self._held, self._at
        if (blank := _BLANK_LINES.match(held, at)) is not None:
            return self._taken(blank.end())
        fence = _FENCE.match(held, at)
        start = fence.end() if fence is not None and not self._fence else at
        if not self._is_known(start):
            return None
        self._at_line = False
        if self._fence:
            if fence is not None and fence["run"].startswith(self._fence):
                self._fence = ""
        elif _OPENS.match(held, start) is not None or _CALL.match(held, start) is not None:
            self._mode = "held"
        elif fence is not None:
            self._fence = fence["run"]
            return self._taken(start)
        elif (label := _LABEL.match(held, at)) is not None:
            self._mode, self._skips, self._blank = "thought" if label["thought"] else "text", True, []
            self._at = label.end()
        return ""

    def _reasoning(self) -> str | None:
        """What stands inside a reasoning tag, up to where the tag that closes it may begin."""
        held, at = self._held, self._at
        tag = held.find("<", at)
        if tag != at:
            return self._taken(tag if tag >= 0 else len(held))
        begun = held[at : at + len(self._closing)].lower()
        end = held.find(">", at, at + _MOST_HELD)
        if begun == self._closing and end >= 0:
            self._closing, self._at, self._at_line = "", end + 1, self._skips
            return ""
        if end < 0 and len(held) - at < _MOST_HELD and self._closing.startswith(begun):
            return None
        return self._taken(at + 1)

    def _taken(self, end: int) -> str:
        piece, self._at = self._held[self._at : end], end
        return piece

"""What of a reply may be shown: without reasoning and leaked control tokens, also while it still streams.

Reasoning tags that stand inside a JSON value or a parameter are text of that value. So the reply is walked once from
left to right, and whatever comes first decides: a value is stepped over, a reasoning block is taken out. While a reply
streams, what may become a call is held back by line. Source: spec/react.md, sections 5, 11 and 13.6.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise
from typing import Literal

from surefoot.core.parse.marks import DELIVERABLE, MARKERS, RESULT
from surefoot.core.parse.objects import value_end
from surefoot.core.parse.scan import MOST_BRACKETS, Seeker, skip_blanks
from surefoot.types.dataclass import dataclass, replace

REASONING_TAGS = ("think", "thinking", "reasoning", "deep_thinking", "shallow_thinking")

END_TOKENS = (
    "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|eos|>",
    "<|user|>", "<|observation|>", "<|end▁of▁sentence|>", "<｜end▁of▁sentence｜>", "<end_of_turn>", "<eos>",
    "<turn|>", "</s>", "[/INST]",
)  # fmt: skip
"""Tokens that end a turn in some family and are part of no form of call."""

TURN_TOKENS = (
    "<|im_start|>", "<|assistant|>", "<|start_header_id|>", "<|end_header_id|>", "<|start_of_role|>",
    "<|end_of_role|>", "<|begin_of_text|>", "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>",
    "<｜begin▁of▁sentence｜>", "<｜Assistant｜>", "<start_of_turn>", "<|turn>", "<bos>",
)  # fmt: skip
"""Tokens that begin the turn of an assistant in some family."""

_TURN = re.compile(
    rf"\s*+(?:(?:{'|'.join(map(re.escape, TURN_TOKENS))})(?:(?:assistant|model)(?=\s|<|\Z))?+\s*+)++"
    r"(?!(?<=[ \t])\w|(?:user|system|tool)\b)"  # words about the token, or another turn
)
_REASONING = re.compile(
    # Mistral's is in square brackets, Gemma's between `<|channel>thought` and `<channel|>`
    rf"(?:<(?:\|(?=channel>[ \t]*+thought\b))?+|(?P<square>\[)(?=/?(?-i:THINK)\]))(?P<close>/|(?=channel\|>))?+"
    rf"(?P<name>{'|'.join(REASONING_TAGS)}|(?<=\|)channel|channel(?=\|>))"
    rf"(?(square)\]|(?:(?<=channel)\||\s[^<>]{{0,200}})?>(?:(?<=\|channel>)[ \t]*+thought[ \t]*+\n?+)?+)",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"[{\[]|<parameter=|<parameter(?=\s++name=[^<>]{1,200}+>)|<arg_value>|<｜DSML｜parameter|__PAYLOAD_START__"
    r"|(?:(?<=[:,{\[])|(?<=[:,] ))(?:<\|\"\|>|<escape>)"  # elsewhere they are words
)
_VALUE_ENDS = {
    **dict.fromkeys(("<parameter=", "<parameter"), "</parameter>"),
    "<arg_value>": "</arg_value>",
    "<｜DSML｜parameter": "</｜DSML｜parameter>",
    "__PAYLOAD_START__": "__PAYLOAD_END__",
    **{quote: quote for quote in ('<|"|>', "<escape>")},
}
_LEAKED_TOKEN = re.compile(r"<[|｜][^|｜<>\s]{1,60}[|｜]>")
_LONGEST_TOKEN = 64


@dataclass(frozen=True, slots=True)
class Visible:
    """The visible text, and where its pieces stood: `pieces` are (place here, place in the reply), in order."""

    text: str
    pieces: tuple[tuple[int, int], ...] = ((0, 0),)
    open_reasoning: bool = False
    tokens_removed: bool = False

    def in_reply(self, at: int) -> int:
        """The place in the reply of a place in the visible text; of an end, when `at` is an end."""
        if not self.pieces:
            return 0
        here, there = self.pieces[max(0, bisect_right(self.pieces, (at - 1, 1 << 62)) - 1)]
        return there + at - here

    def part(self, start: int, end: int) -> Visible:
        """A part of the visible text as one of its own."""
        first = (0, self.in_reply(start + 1) - 1)
        inner = [(here - start, there) for here, there in self.pieces if start < here < end]
        return Visible(self.text[start:end], (first, *inner), self.open_reasoning, self.tokens_removed)

    def unbroken(self) -> tuple[str, ...]:
        """The pieces of text between which something was taken out."""
        places = [here for here, _ in self.pieces] + [len(self.text)]
        return tuple(self.text[start:end] for start, end in pairwise(places))

    @property
    def joint(self) -> int:
        """The first place where something was taken out in the middle; the end if there is none."""
        return next((here for here, _ in self.pieces[1:] if here > 0), len(self.text))


_NOTHING = Visible("")


def visible(reply: str) -> Visible:
    """The reply without its reasoning, and without the tokens that begin a turn before it and end one behind it."""
    if not reply:
        return _NOTHING
    shown = _without_reasoning(reply) if "<" in reply or "THINK]" in reply else Visible(reply)
    if (turn := _TURN.match(shown.text)) is not None:
        shown = replace(shown.part(turn.end(), len(shown.text)), tokens_removed=True)
    text, end, kept = shown.text, len(shown.text), -1
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        if not text.endswith(END_TOKENS, 0, end):
            return shown if kept < 0 else replace(shown, text=text[:kept], tokens_removed=True)
        end = kept = end - next(len(token) for token in END_TOKENS if text.endswith(token, 0, end))


def without_leaked_tokens(text: str) -> str:
    """The text without any control tokens at its end, for forms that have none of their own."""
    end = kept = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        at = text.rfind("<", max(0, end - _LONGEST_TOKEN), end) if text.endswith(("|>", "｜>"), 0, end) else -1
        if at < 0 or not _LEAKED_TOKEN.fullmatch(text, at, end):
            return text[:kept] if kept < len(text) else text
        kept = end = at


def _without_reasoning(reply: str) -> Visible:
    tag = _REASONING.search(reply)
    if tag is None:
        return Visible(reply)
    kept: list[tuple[int, int]] = []  # spans of the reply that are visible
    values = _Values(reply)
    start = at = 0
    while tag is not None:
        protected = values.over(at, tag.start())
        if protected >= 0:
            at = protected
            tag = _REASONING.search(reply, at)
            continue
        if tag["close"] is not None:
            kept, start = [], skip_blanks(reply, tag.end())
        else:
            if start < tag.start():
                kept.append((start, tag.start()))
            tags, name = _REASONING.finditer(reply, tag.end()), tag["name"].lower()
            closing = next((one for one in tags if one["close"] is not None and one["name"].lower() == name), None)
            if closing is None:
                return _joined(reply, kept, open_reasoning=True)
            last = reply[kept[-1][1] - 1] if kept else " "
            start = skip_blanks(reply, closing.end()) if last.isspace() else closing.end()
        at = start
        tag = _REASONING.search(reply, at)
    kept.append((start, len(reply)))
    return _joined(reply, kept, open_reasoning=False)


class _Values:
    """The JSON values and parameters of a reply, asked about from left to right."""

    def __init__(self, reply: str) -> None:
        self._reply = reply
        self._seek = Seeker(reply)
        self._tried = 0

    def over(self, start: int, tag: int) -> int:
        """The end of the value that begins between `start` and `tag` and holds the tag; -1 if there is none."""
        reply, at = self._reply, start
        while self._tried < MOST_BRACKETS and (opening := _VALUE.search(reply, at, tag)) is not None:
            sign = opening.group()
            if sign in "{[":
                end, goes_on = value_end(reply, opening.start())
                if end > tag:
                    return end
                self._tried += end < 0
                at = end if end >= 0 else goes_on
                continue
            others = ("<parameter", "<invoke") if sign == "<parameter" else ()
            closing = self._seek.before(_VALUE_ENDS[sign], others, opening.end())
            if closing > tag:
                return closing
            is_quote = sign == _VALUE_ENDS[sign]  # the same sign opens the next one
            at = max(closing + is_quote * len(sign), opening.end())
        return -1


def _joined(reply: str, kept: list[tuple[int, int]], *, open_reasoning: bool) -> Visible:
    pieces: list[tuple[int, int]] = []
    texts: list[str] = []
    here = 0
    for start, end in kept:
        if start < end:
            pieces.append((here, start))
            texts.append(reply[start:end])
            here += end - start
    return Visible("".join(texts), tuple(pieces), open_reasoning)


_MOST_HELD = 64  # characters of a line's beginning, or from a bracket on, that are waited for before they are shown

_LEAD = r"[ \t]*+(?:(?:[-+>•#]++|\d++[.)])[ \t]++)*[*_#` \t]*+"
_LABEL = re.compile(
    rf"{_LEAD}(?:(?P<thought>thought|思考)|final[ \t_]*answer|最终答案)[ \t*_]*+[:：][ \t*_]*+", re.IGNORECASE
)
_OPENS = re.compile(
    rf"{_LEAD}(?:[{{\[]|[\w.\\]++\(|(?:(?:action|tool|function)(?:[ \t_]*(?:name|input|args|arguments))?|observation"
    r"|行动|行动输入|观察|(?:调用)?工具)[ \t*_]*+[:：])",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[{\[]\s*+\Z")
_BLANK_LINES = re.compile(r"(?:[ \t\r]*+\n)++")
_FENCE = re.compile(r"[ \t]*+(?P<run>`{3,}+|~{3,}+)[^\n]{0,200}+(?:\n\s*+)?")
_MARKS = "|".join(map(re.escape, (*MARKERS, RESULT, DELIVERABLE, *END_TOKENS, *TURN_TOKENS)))
_CALL = re.compile(
    rf"{_MARKS}|<[|｜](?!channel>)|<[ \t]*+/?[ \t]*+(?:tool|function|invoke|action)[ \t\w-]*+[>=]|[{{\[]\s*+[\"'{{\[]",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[<\[{\n]")
_PLAIN = re.compile(
    rf"{_LABEL.pattern}\S|{_LEAD}(?:<[^<>]+>|(?!t(?:h?\Z|ho)|f(?:i?\Z|in)|[思最<`~>•#+-]|\d++(?:[.)]|\Z))\S)",
    re.IGNORECASE,
)
"""Where no call is awaited, this is known: a whole label or tag, or what can become no label, no tag and no fence."""


class DisplayFilter:
    """Feed it the text of a reply as it comes; it gives back the text and the reasoning that may be shown now.

    A thought and what stands in reasoning tags is reasoning. Blanks are shown with what follows them, so that what is
    shown never begins or ends in any. What depends on the chunks is only when something is shown. Where a run has no
    tools, `calls` is False, and nothing is held back since it may become one.
    """

    def __init__(self, *, calls: bool = True) -> None:
        self._calls = calls
        self.reset()

    def reset(self) -> None:
        """Forget everything: the reply begins again."""
        self._held = self._closing = self._fence = self._same = ""
        self._at = 0
        self._blank: list[str] = []
        self._more: list[str] = []
        self._mode: Literal["text", "thought", "held"] = "text"
        self._at_line = self._skips = True

    def feed(self, chunk: str) -> tuple[str, str]:
        """The text and the reasoning to show now."""
        self._more.append(chunk)
        if self._same and not chunk.strip(self._same):
            return "", ""
        self._held += "".join(self._more)
        self._more, self._same = [], ""
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
                piece = piece.lstrip() if self._skips else piece
                if not (kept := piece.rstrip()):  # blanks wait for what follows them
                    self._blank.append(piece)
                    continue
                text += [*self._blank, kept]
                self._blank, self._skips = [piece[len(kept) :]], False
        self._held, self._at = "" if self._mode == "held" else self._held[self._at :], 0
        return "".join(text), "".join(thought)

    def _piece(self) -> str | None:
        """The next piece of what is held, "" for one that is not shown; None if more is needed to say what it is."""
        if self._closing:
            # What stands inside a reasoning tag, up to where the tag that closes it may begin.
            held, at = self._held, self._at
            tag = held.find("<", at)
            if tag != at:
                return self._take(tag if tag >= 0 else len(held))
            begun = held[at : at + len(self._closing)].lower()
            end = held.find(">", at, at + _MOST_HELD)
            if begun == self._closing and end >= 0:
                self._closing, self._at, self._at_line = "", end + 1, self._skips
                return ""
            if end < 0 and len(held) - at < _MOST_HELD and self._closing.startswith(begun):
                return None
            return self._take(at + 1)
        if self._at_line:
            return self._line()
        held, at = self._held, self._at
        sign = _SIGN.search(held, at)
        if sign is None or sign.start() > at:
            return self._take(sign.start() if sign is not None else len(held))
        self._at_line = sign.group() == "\n"
        if self._at_line or self._fence or (sign.group() != "<" and not self._calls):
            return self._take(at + 1)
        if not self._is_known(at):
            return None
        tag = _REASONING.match(held, at)
        if tag is not None and tag["close"] is None and not tag["square"]:
            name = tag["name"].lower()
            self._closing = "<channel|" if name == "channel" else f"</{name}"
            self._skips = self._skips or any(self._blank)
            self._at = tag.end()
        elif tag is not None or _CALL.match(held, at, at + _MOST_HELD) is not None:
            self._mode = "held"
        else:
            return self._take(at + 1)
        return ""

    def _is_known(self, at: int) -> bool:
        """Whether enough stands from there on, or all of its line and what a bracket at the line's end opens."""
        is_plain = not self._calls and _PLAIN.match(self._held, at) is not None
        is_line = self._held.find("\n", at) >= 0 and _GOES_ON.match(self._held, at) is None
        return is_plain or len(self._held) - at >= _MOST_HELD or is_line

    def _line(self) -> str | None:
        """The beginning of a line: a label is stepped over, and what may open a call ends what is shown."""
        held, at = self._held, self._at
        if (blank := _BLANK_LINES.match(held, at)) is not None:
            return self._take(blank.end())
        fence = _FENCE.match(held, at)
        start = fence.end() if fence is not None and not self._fence else at
        if not self._is_known(start):
            if start == len(held) and fence is not None:  # more of this run, or of blanks behind the line, says nothing
                self._same = held[-1] if start == fence.end("run") else " \t\r\n\v\f" * ("\n" in fence[0])
            return None
        self._at_line = False
        if self._fence:
            if fence is not None and fence["run"].startswith(self._fence):
                self._fence = ""
        elif self._calls and (
            _OPENS.match(held, start, start + _MOST_HELD) or _CALL.match(held, start, start + _MOST_HELD)
        ):
            self._mode = "held"
        elif fence is not None:
            self._fence = fence["run"]
            return self._take(start)
        elif (label := _LABEL.match(held, at)) is not None:
            self._mode, self._skips, self._blank = "thought" if label["thought"] else "text", True, []
            self._at = label.end()
        return ""

    def _take(self, end: int) -> str:
        piece, self._at = self._held[self._at : end], end
        return piece

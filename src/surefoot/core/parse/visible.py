"""The visible part of a reply: what is left without reasoning and without leaked control tokens.

Reasoning tags that stand inside a JSON value or a parameter are text of that value. So the reply is walked once from
left to right, and whatever comes first decides: a value is stepped over, a reasoning block is taken out. Source:
spec/react.md, section 5.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

from surefoot.core.parse.json_ladder import value_end
from surefoot.core.parse.scan import MOST_BRACKETS, Seeker, skip_blanks
from surefoot.types.dataclass import dataclass, replace

REASONING_TAGS = ("think", "thinking", "reasoning", "deep_thinking", "shallow_thinking")

END_TOKENS = (
    "<|im_end|>",
    "<|im_start|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eos|>",
    "<|user|>",
    "<|observation|>",
    "<|end▁of▁sentence|>",
    "<｜end▁of▁sentence｜>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "[/INST]",
)
"""Tokens that end a turn in some family and are part of no form of call."""

TURN_TOKENS = (
    "<|im_start|>",
    "<|assistant|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|start_of_role|>",
    "<|end_of_role|>",
    "<|begin_of_text|>",
    "<|START_OF_TURN_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
    "<｜begin▁of▁sentence｜>",
    "<｜Assistant｜>",
    "<start_of_turn>",
    "<bos>",
)
"""Tokens that begin the turn of an assistant in some family."""

TURN_ROLES = ("assistant", "model")
_TURN = re.compile(
    rf"\s*+(?:(?:{'|'.join(map(re.escape, TURN_TOKENS))})(?:(?:{'|'.join(TURN_ROLES)})(?=\s|<|\Z))?+\s*+)++"
    r"(?!(?<=[ \t])\w|(?:user|system|tool)\b)",  # words about the token, or another turn
)
_REASONING = re.compile(rf"<(?P<close>/?)(?P<name>{'|'.join(REASONING_TAGS)})(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_VALUE = re.compile(r"[{\[]|<parameter=|<arg_value>|<｜DSML｜parameter|__PAYLOAD_START__")
_VALUE_ENDS = {
    "<parameter=": "</parameter>",
    "<arg_value>": "</arg_value>",
    "<｜DSML｜parameter": "</｜DSML｜parameter>",
    "__PAYLOAD_START__": "__PAYLOAD_END__",
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

    def joint_after(self, at: int) -> int:
        """The first place behind `at` where something was taken out in the middle; the end if there is none."""
        return next((here for here, _ in self.pieces[1:] if here > at), len(self.text))


def visible(reply: str) -> Visible:
    """The reply without its reasoning, and without the tokens that begin a turn before it and end one behind it."""
    shown = _without_reasoning(reply) if "<" in reply else Visible(reply)
    if (turn := _TURN.match(shown.text)) is not None:
        shown = replace(shown.part(turn.end(), len(shown.text)), tokens_removed=True)
    kept = _without_end_tokens(shown.text)
    if len(kept) == len(shown.text):
        return shown
    return Visible(kept, shown.pieces, shown.open_reasoning, tokens_removed=True)


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


def _without_end_tokens(text: str) -> str:
    end = len(text)
    kept = end
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        token = next((token for token in END_TOKENS if text.endswith(token, 0, end)), None)
        if token is None:
            return text[:kept] if kept < len(text) else text
        end -= len(token)
        kept = end


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
        if tag["close"]:
            kept, start = [], skip_blanks(reply, tag.end())
        else:
            if start < tag.start():
                kept.append((start, tag.start()))
            closing = _closing(reply, tag)
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
            closing = self._seek.find(_VALUE_ENDS[sign], opening.end())
            if closing > tag:
                return closing
            at = max(closing, opening.end())
        return -1


def _closing(reply: str, opening: re.Match[str]) -> re.Match[str] | None:
    name = opening["name"].lower()
    for tag in _REASONING.finditer(reply, opening.end()):
        if tag["close"] and tag["name"].lower() == name:
            return tag
    return None


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

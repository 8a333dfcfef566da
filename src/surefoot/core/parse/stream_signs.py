"""What the text at one place of a stream is, or may still become: a marker, a reasoning tag, a label, a code fence.

Each function looks at the text from that place on, as far as it has come. "wait" means that more text could change the
answer; any other answer stands whatever follows. With `final` nothing follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from surefoot.core.parse.labels import KINDS, Labels, words_of
from surefoot.core.parse.marks import (
    FUNCTION,
    FUNCTION_CALL,
    FUNCTION_CALL_END,
    MARKERS,
    RESULT,
    TOOL_CALL,
    TOOL_CALL_END,
)
from surefoot.core.parse.visible import END_TOKENS, REASONING_TAGS, TURN_ROLES, TURN_TOKENS

MOST_HELD_CHARS = 400

_WEAK = {TOOL_CALL: (TOOL_CALL, TOOL_CALL_END, FUNCTION), FUNCTION_CALL: (FUNCTION_CALL, FUNCTION_CALL_END)}
_HEADERS = ("<|channel|>", "<|start|>assistant")
_MESSAGE_ENDS = ("<|end|>", "<|call|>", "<|return|>")
_STRONG = tuple(marker for marker in (*MARKERS, RESULT) if marker not in _WEAK and marker not in _HEADERS)
_DROPPED = (*END_TOKENS, *_MESSAGE_ENDS, "<|python_end|>", "<|message|>")
_LITERALS = (*_STRONG, *_WEAK, *_HEADERS, *TURN_TOKENS, *_DROPPED)

_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z_]{0,20}+)(?P<rest>\s[^<>]{0,200}+)?(?P<end>>)?")
_BODY = re.compile(r"\s{0,400}+(?P<sign>\S)?")
_GLM = re.compile(r"\s{0,400}+[\w.:-]{1,200}+\s{0,400}+(?P<sign>\S)?")
_FENCE = re.compile(r"[ \t]{0,100}+(?P<run>`{3,}+|~{3,}+)(?P<info>[^\n`]{0,200}+)")
_FENCE_BEGUN = re.compile(r"[ \t]{0,100}+(?:`{0,2}|~{0,2})\Z")
_BLANK = str.maketrans("", "", " \t*_#")


@dataclass(frozen=True, slots=True)
class Sign:
    """What stands at a place and how long it is. `name` is the tag, label or fence; `decorated`: with `*` or `_`."""

    kind: Literal["wait", "call", "header", "reasoning", "closing", "dropped", "label", "fence"]
    size: int = 0
    name: str = ""
    decorated: bool = False


WAIT = Sign("wait")


def marker_sign(text: str, *, final: bool) -> Sign | None:
    """The marker or tag at the beginning of the text; None if there is none."""
    for literal in _LITERALS:
        if text.startswith(literal):
            if literal in _WEAK:
                return _weak(text, literal, final=final)
            if literal in TURN_TOKENS:
                return _turn(text, literal, final=final)
            if literal in _DROPPED:
                return Sign("dropped", len(literal))
            return Sign("header" if literal in _HEADERS else "call")
    tag = _TAG.match(text)
    if tag is not None:
        name = tag["name"].lower()
        if tag["end"] and name in REASONING_TAGS:
            return Sign("closing" if tag["close"] else "reasoning", tag.end(), name)
        is_open = tag.end() == len(text) and not final
        if is_open and (name in REASONING_TAGS if tag["rest"] else any(t.startswith(name) for t in REASONING_TAGS)):
            return WAIT
    if not final and any(literal.startswith(text) for literal in _LITERALS):
        return WAIT
    return None


def _turn(text: str, token: str, *, final: bool) -> Sign:
    """A token that begins a turn, with the role that it may be followed by."""
    rest = text[len(token) :]
    if not final and any(role.startswith(rest) for role in TURN_ROLES):
        return WAIT
    role = next((role for role in TURN_ROLES if rest.startswith(role)), "")
    behind = rest[len(role) : len(role) + 1]
    return Sign("closing", len(token) + (len(role) if not behind or behind.isspace() or behind == "<" else 0))


def _weak(text: str, marker: str, *, final: bool) -> Sign | None:
    """A marker that looks like a tag counts only with the start of a body behind it."""
    inside = len(marker)
    body = _BODY.match(text, inside)
    if body is None or body["sign"] is None:
        return None if final or body is None or body.end() < len(text) else WAIT
    at = body.end() - 1
    if text[at] in "{[":
        return Sign("call")
    begun = _begun(text, at, (*_WEAK[marker], "```"), final=final)
    if begun is not None or marker != TOOL_CALL:
        return begun
    named = _GLM.match(text, inside)
    if named is None:
        return None
    if named["sign"] is None:
        if final:
            return None if text[inside : inside + 1] == " " else Sign("call")
        return WAIT if named.end() == len(text) else None
    return _begun(text, named.end() - 1, ("<arg_key>", TOOL_CALL_END), final=final)


def _begun(text: str, at: int, bodies: tuple[str, ...], *, final: bool) -> Sign | None:
    if text.startswith(bodies, at):
        return Sign("call")
    return WAIT if not final and any(body.startswith(text[at:]) for body in bodies) else None


def reasoning_end(text: str, name: str, *, final: bool) -> Sign | None:
    """The end of a reasoning block at the beginning of the text; without a name, of a harmony message."""
    if not name:
        for literal in (*_MESSAGE_ENDS, *_HEADERS):
            if text.startswith(literal):
                return Sign("header") if literal in _HEADERS else Sign("closing", len(literal))
            if not final and literal.startswith(text):
                return WAIT
        return None
    wanted, begun = f"</{name}", text[: len(name) + 2].lower()
    if begun == wanted:
        tag = _TAG.match(text)
        if tag is None or tag["name"].lower() != name:
            return None
        if tag["end"]:
            return Sign("closing", tag.end(), name)
        return WAIT if tag.end() == len(text) and not final else None
    return WAIT if not final and len(text) < len(wanted) and wanted.startswith(begun) else None


def label_sign(text: str, labels: Labels, pattern: re.Pattern[str], *, final: bool) -> Sign | None:
    """The label at the beginning of a line; None if the line has none."""
    found = pattern.match(text[:MOST_HELD_CHARS])
    if found is not None and not found["fence"] and not found["inline"]:
        name = next(kind for kind in KINDS if kind in pattern.groupindex and found[kind])
        return Sign("label", found.end(), name, any(sign in "*_" for sign in found["decoration"] + found["inner"]))
    if final or "\n" in text or len(text) >= MOST_HELD_CHARS:
        return None
    begun = text.translate(_BLANK).casefold()
    for kind in KINDS:
        for word in words_of(labels, kind):
            whole = word.translate(_BLANK).casefold()
            if whole.startswith(begun) or (begun.startswith(whole) and begun[len(whole) :].isdecimal()):
                return WAIT
    return None


def fence_sign(text: str, inside: str, *, final: bool) -> Sign | None:
    """The fence line at the beginning of a line. `inside`: the run of the open fence, if there is one."""
    fence = _FENCE.match(text)
    if fence is None:
        return WAIT if not final and _FENCE_BEGUN.match(text) and len(text) < MOST_HELD_CHARS else None
    complete = fence.end() < len(text) or final
    run, info = fence["run"], fence["info"]
    if inside:
        if info.strip() or not run.startswith(inside[0]):
            return None
        if not complete:
            return WAIT
        closes = run.startswith(inside) and text[fence.end() : fence.end() + 1] in ("", "\n")
        return Sign("fence", fence.end(), run) if closes else None
    if not complete:
        return WAIT
    if text[fence.end() : fence.end() + 1] == "`" and run[0] == "`":
        return None
    return Sign("fence", fence.end(), run)

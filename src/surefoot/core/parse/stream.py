"""What of a reply may be shown while it still streams: a state machine over text, no matter how it is cut into chunks.

Calls, labels and reasoning tags are never shown; reasoning is handed out apart. Text whose end could still become one
of these is held back until it cannot. Every decision is made about one place of the text, from the text before it and
from enough of what follows, never from where a chunk ends; so any cutting shows the same. Nothing is ever run from
here: the complete reply is parsed once. Source: spec/react.md, section 11.
"""

from __future__ import annotations

import re
from typing import Literal

from surefoot.core.parse.labels import DEFAULT_LABELS, Labels, label_pattern
from surefoot.core.parse.stream_signs import MOST_HELD_CHARS, fence_sign, label_sign, marker_sign, reasoning_end

_Mode = Literal["text", "thought", "reasoning", "hidden", "header"]

_SPECIAL = re.compile(r"[<\[\n]")
_PLAIN = re.compile(r"[^<\[\n]++")
_CHANNEL = re.compile(r"<\|channel\|>\s*+(?P<name>[a-z]*+)")
_RECIPIENT = re.compile(r"\bto=\S")
_MESSAGE = "<|message|>"
_PYTHON_END = "<|python_end|>"


class DisplayFilter:
    """Feed it the text of a reply as it comes; it gives back what may be shown now.

    With `labels` (text modes) the labels of a step work too: a thought goes to the reasoning, an action hides what
    follows, a final answer is text. With None (native mode) only markers and reasoning tags do.
    """

    def __init__(self, labels: Labels | None = DEFAULT_LABELS) -> None:
        self._labels = labels
        self._pattern = label_pattern(labels) if labels is not None else None
        self.reset()

    def reset(self) -> None:
        """Forget everything: the reply begins again."""
        self._mode: _Mode = "text"
        self._held = ""
        self._text: list[str] = []
        self._thought: list[str] = []
        self._line_start = True
        self._fence = ""
        self._skip: str | None = None  # signs to leave out before the next one that is shown; "" is all white space
        self._last = ""
        self._closes = ""
        self._before: _Mode = "text"
        self._thought_seen = self._answer_seen = self._harmony = self._begun = False
        self._plain = False

    def feed(self, chunk: str) -> tuple[str, str]:
        """The text and the reasoning to show now."""
        if self._plain and _SPECIAL.search(chunk) is None:
            self._last = chunk[-1:] or self._last
            return chunk, ""
        self._held += chunk
        return self._run(final=False)

    def finish(self) -> tuple[str, str]:
        """What was held back, once the reply is complete."""
        return self._run(final=True)

    def _run(self, *, final: bool) -> tuple[str, str]:
        while self._held and self._step(final=final):
            pass
        shown, thought = "".join(self._text), "".join(self._thought)
        self._text.clear()
        self._thought.clear()
        self._plain = self._mode == "text" and not (
            self._held or self._line_start or self._fence or self._harmony or self._skip is not None
        )
        return shown, thought

    def _step(self, *, final: bool) -> bool:
        """Deal with the next piece of what is held; False if more text is needed first."""
        if self._skip is not None:
            self._held = self._held.lstrip(self._skip or None)
            if not self._held:
                return False
            self._skip = None
        match self._mode:
            case "hidden":
                return self._hidden()
            case "header":
                return self._header(final=final)
            case "reasoning":
                return self._reasoning(final=final)
            case "text" | "thought":
                return self._shown(final=final)

    def _take(self, size: int, *, show: bool = True) -> bool:
        """Step over the first signs of what is held, and show them unless told otherwise."""
        piece, self._held = self._held[:size], self._held[size:]
        if show and piece:
            (self._text if self._mode == "text" else self._thought).append(piece)
            if self._mode != "reasoning":
                self._last = piece[-1]
        return True

    def _shown(self, *, final: bool) -> bool:
        held = self._held
        if self._line_start:
            decided = self._line(final=final)
            if decided is not None:
                return decided
            self._line_start = False
        plain = _PLAIN.match(held)
        if plain is not None:
            self._begun = self._begun or not plain.group().isspace()
            return self._take(plain.end())
        if held[0] == "\n":
            self._line_start = True
            return self._take(1)
        self._begun = True
        if self._fence:
            return self._take(1)
        sign = marker_sign(held, final=final)
        if sign is None:
            return self._take(1)
        match sign.kind:
            case "wait":
                return False
            case "call":
                self._mode = "hidden"
            case "header":
                self._harmony = True
                self._mode = "header"
            case "reasoning":
                self._before, self._mode, self._closes = self._mode, "reasoning", sign.name
                self._take(sign.size, show=False)
            case "dropped":
                self._take(sign.size, show=False)
            case "closing":
                self._take(sign.size, show=False)
                self._after_block()
            case _:
                return self._take(1)
        return True

    def _line(self, *, final: bool) -> bool | None:
        """What the line that begins here is: None if it is only text; False if that is still open."""
        held = self._held
        fence = fence_sign(held, self._fence, final=final)
        if fence is not None and fence.kind == "wait":
            return False
        if fence is not None:
            if self._fence:
                self._fence = ""
            elif self._begun:  # a fence around the whole reply hides nothing in it
                self._fence = fence.name
            self._begun = True
            self._line_start = False
            return self._take(fence.size)
        if self._fence or self._pattern is None or self._labels is None:
            return None
        label = label_sign(held, self._labels, self._pattern, final=final)
        if label is None:
            return None
        if label.kind == "wait":
            return False
        match label.name:
            case "thought":
                self._mode, self._thought_seen = "thought", True
            case "action" | "input":
                self._mode = "hidden"
            case "answer":
                self._mode, self._answer_seen = "text", True
            case "bare_answer" if self._thought_seen:
                self._mode, self._answer_seen = "text", True
            case "question" if self._answer_seen:
                self._mode = "hidden"
            case _:
                return None
        self._line_start = False
        self._begun = True
        self._skip = " \t*_" if label.decorated else " \t"
        return self._take(label.size, show=False)

    def _after_block(self) -> None:
        """Behind reasoning: blanks that it leaves are not shown."""
        self._line_start = self._last in ("", "\n")
        if self._last.isspace() or not self._last:
            self._skip = ""

    def _reasoning(self, *, final: bool) -> bool:
        plain = self._held.find("<")
        if plain:
            return self._take(len(self._held) if plain < 0 else plain)
        sign = reasoning_end(self._held, self._closes, final=final)
        if sign is None:
            return self._take(1)
        if sign.kind == "wait":
            return False
        if sign.kind == "header":
            self._mode = "header"
            return True
        self._take(sign.size, show=False)
        self._mode = self._before
        self._after_block()
        return True

    def _hidden(self) -> bool:
        """Leave out what follows a call; only `<|python_end|>` and the next message of harmony end that."""
        held = self._held
        ends = ("<|channel|>", "<|start|>assistant") if self._harmony else (_PYTHON_END,)
        place = min((at for end in ends if (at := held.find(end)) >= 0), default=-1)
        if place >= 0:
            self._held = held[place:]
            if self._harmony:
                self._mode = "header"
            else:
                self._mode = "text"
                self._take(len(_PYTHON_END), show=False)
            return True
        longest = max(map(len, ends)) - 1
        tail = held.rfind("<", max(0, len(held) - longest))
        self._held = held[tail:] if tail >= 0 and any(end.startswith(held[tail:]) for end in ends) else ""
        return False

    def _header(self, *, final: bool) -> bool:
        """The head of a harmony message decides about its body."""
        at = self._held.find(_MESSAGE, 0, MOST_HELD_CHARS)
        if at < 0:
            if len(self._held) >= MOST_HELD_CHARS:
                self._mode = "hidden"
                return self._take(1, show=False)
            if final:
                self._held = ""
            return False
        head = self._held[:at]
        channel = _CHANNEL.search(head)
        self._take(at + len(_MESSAGE), show=False)
        name = channel["name"] if channel else "final"
        if name == "analysis":
            self._before, self._mode, self._closes = "text", "reasoning", ""
        else:
            self._mode = "hidden" if _RECIPIENT.search(head) and name != "final" else "text"
        self._line_start = True
        return True

"""ReAct text: `Thought:`, `Action:`, `Action Input:`, `Final Answer:`; the first complete step in document order wins.

A label counts at a line start, outside code fences and outside the JSON value of an input. So the text is walked
once, and what a label opens is read before the walk goes on behind it. Source: spec/react.md, sections 6 and 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from surefoot.core.parse import scan
from surefoot.core.parse.calls import TRAILING, Draft, Found, Reading, draft_of, fault_of
from surefoot.core.parse.marks import KINDS, LabelKind, Labels, is_answer_name, label_pattern
from surefoot.core.parse.objects import read
from surefoot.core.parse.steps import Given, bind, found_of, is_no_action, read_input, step_of, steps_follow
from surefoot.core.parse.toolset import takes_nothing
from surefoot.core.text.json import as_object
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.reply import Fault, FaultKind, ReplyWarning

_MOST_LABELS = 5_000  # labels of one reply that are looked at; what stands behind so many is text

_ANSWER_LABELS = ("answer", "bare_answer")
_NO_STEP = ("thought", "observation", "question")
_LINE_END = re.compile(r"[^\n]*+")
_ECHO = re.compile(r"[ \t]*+(?P<stars>[*_]{1,3})(?=\s|\Z)")


@dataclass(frozen=True, slots=True)
class _Label:
    kind: LabelKind
    start: int
    end: int
    open_decoration: str
    """Asterisks or underscores that were opened before the label and not closed behind it."""


class _Walk:
    """Labels and JSON blocks of a text in document order, fences stepped over."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.text = text
        self.reading = reading
        self._pattern = label_pattern(reading.labels)
        self._left = _MOST_LABELS

    def labels(self, at: int, *, bare_answer: bool = False) -> Iterator[_Label]:
        while (label := self.label(at, bare_answer=bare_answer)) is not None:
            yield label
            at = label.end

    def label(self, at: int, *, bare_answer: bool = False) -> _Label | None:
        while self._left and (match := scan.outside_fences(self._pattern, self.text, at)) is not None:
            self._left -= 1
            kind: LabelKind = "question"
            for kind in KINDS:  # a loop, since it runs at each label
                if kind in match.re.groupindex and match[kind]:
                    break
            if kind == "bare_answer" and not bare_answer:
                at = match.end()
                continue
            opened = match["decoration"] and "".join(sign for sign in match["decoration"] if sign in "*_")
            echo = _ECHO.match(self.text, match.end())
            if echo and (len(echo["stars"]) > 1 or opened):
                return _Label(kind, match.start(), echo.end(), "")
            is_closed = not opened or any(sign in match["inner"] for sign in "*_")
            return _Label(kind, match.start(), match.end(), "" if is_closed else opened)
        return None


def has_step(text: str, reading: Reading) -> bool:
    """Whether the text is written in ReAct labels: an answer label, or an action with an input."""
    walk = _Walk(text, reading)
    seen_action = seen_thought = False
    label = walk.label(0)
    while label is not None:
        if label.kind in _ANSWER_LABELS or (label.kind == "input" and seen_action):
            return True
        seen_action = seen_action or label.kind == "action"
        seen_thought = seen_thought or label.kind == "thought"
        label = walk.label(label.end, bare_answer=seen_thought)
    return False


def first_action(text: str, reading: Reading) -> int:
    """Where the first action label stands; -1 if there is none."""
    opening = (label.start for label in _Walk(text, reading).labels(0) if label.kind in ("action", "input"))
    return next(opening, -1)


def has_answer_label(text: str, reading: Reading) -> bool:
    """Whether a final answer is labelled anywhere."""
    return any(label.kind == "answer" for label in _Walk(text, reading).labels(0))


def without_partial_stop(text: str, labels: Labels) -> str:
    """The text without a stop sequence, or the beginning of one, that a server left at its end."""
    newline = text.rfind("\n")
    last = text[newline + 1 :].rstrip()
    if newline < 0 or not last or (last.isascii() and len(last) < _LEAST_PARTIAL):
        return text
    partial = any(f"{word}{colon}".startswith(last) for word in labels.observation for colon in ":：")
    return text[:newline] if partial else text


_LEAST_PARTIAL = 3


class React:
    """The first step of a visible text. `joint`: the first place where reasoning was taken out of its middle."""

    def __init__(self, text: str, reading: Reading, joint: int) -> None:
        self._text = text
        self._reading = reading
        self._joint = joint
        self._walk = _Walk(text, reading)
        self._thought = False

    def read(self) -> Found:
        label = self._walk.label(0)
        block = self._block(label)
        if block is not None:
            return block
        while label is not None:
            at = label.end
            if label.kind == "action":
                found, at = self._action(label)
                if found is not None:
                    return found
            elif label.kind == "input":
                return self._fault("missing_action", "an input stands without an action")
            elif label.kind in _ANSWER_LABELS:
                return self._final(label.end, self._answer_end(label), label.start, label.open_decoration)
            self._thought = self._thought or label.kind == "thought"
            label = self._walk.label(at, bare_answer=self._thought)
        return self._fault("no_step", "neither an action nor a final answer was found")

    def _before(self, at: int) -> str:
        """What stands before a step, without the label of the thought that it begins with."""
        label, text = self._walk.label(0), self._text
        if label is None or label.kind != "thought" or label.end > at or text[: label.start].strip():
            return text[:at]
        return text[label.end : at].strip()

    def _fault(self, kind: FaultKind, told: str) -> Found:
        return Found("react", (), self._text, error=Fault(kind, told))

    def _block(self, first: _Label | None) -> Found | None:
        """A step as a JSON object, bare at a line start or in a fence, before any label that opens a step."""
        text = self._text
        if "action" not in text:
            return None
        if first is not None and first.kind in _NO_STEP:
            first = next((label for label in self._walk.labels(first.end) if label.kind not in _NO_STEP), None)
        limit = first.start if first is not None else len(text)
        at = tried = 0
        while tried < scan.MOST_BRACKETS and (step := _BLOCK.search(text, at, limit)) is not None:
            if step["value"]:
                start, at = step.end() - 1, step.end()
            elif step["fence"] and (fence := scan.fence_at(text, scan.skip_blanks(text, step.start()))) is not None:
                start, at = scan.skip_blanks(text, fence.inner), max(step.end(), fence.end)
                if start >= fence.inner_end or text[start] not in "{[":
                    continue
            else:
                at = step.end()
                continue
            try:
                value = read(text, start, self._reading.rules("```", at_end=True, is_call=True))
            except scan.NotJsonError as error:
                if _STEP_KEY.match(text, start):
                    draft = Draft(fault=fault_of(error, start, self._reading))
                    return Found("react", (draft,), self._before(step.start()))
                at = max(at, error.resume)
                tried += 1
                continue
            at = max(at, value.end)
            if (found := step_of(value.value)) is not None:
                found = replace(found, more=found.more or steps_follow(text, at, limit, self._reading))
                return self._with_note(found_of(found, self._reading, "react", self._before(step.start()), at))
        return None

    def _with_note(self, found: Found) -> Found:
        """The step with a note of what stands behind it and is dropped."""
        if found.end < 0:
            return found
        return replace(found, warnings=found.warnings | self._dropped(found.end))

    def _action(self, label: _Label) -> tuple[Found | None, int]:
        """The step that an action label opens; or None, and where to go on."""
        text, reading = self._text, self._reading
        following = self._walk.label(label.end)
        stop = following.start if following else len(text)
        at = scan.skip_blanks(text, label.end)
        if (blob := self._blob(label, at, stop)) is not None:
            return blob, stop
        line = _LINE_END.match(text, at)
        end = min(line.end() if line else stop, stop)
        name, given = text[at:end], None
        bracket = name.find("{")
        if bracket > 0 and name[:bracket].strip(" \t(*_`"):  # the input stands on the same line
            name, given = name[:bracket].rstrip(" \t("), read_input(text, at + bracket, stop, reading)
        name = name.strip()
        if label.open_decoration:
            name = name.removesuffix(label.open_decoration).rstrip()
        while following is not None and following.kind == "thought":
            following = self._walk.label(following.end)
        labelled = following if following is not None and following.kind == "input" else None
        if is_no_action(name) and reading.offered.find(name).tool is None:
            return None, max(labelled.end, self._input(labelled).end) if labelled else end
        if not name.strip("`*_ "):
            if labelled is not None:
                return self._fault("missing_action", "the action has no name"), stop
            return None, max(end, label.end)
        answer = _ANSWER_INLINE.match(name)
        if answer and is_answer_name(answer["label"], reading.labels):
            return self._final(end - len(answer["text"]), len(text), label.start), stop
        if is_answer_name(name, reading.labels):
            if labelled is None:
                return Found("react", (), text, error=Fault("empty_final", "the final answer is empty")), stop
            return self._final(labelled.end, self._answer_end(labelled), label.start, labelled.open_decoration), stop
        if labelled is not None:
            given = self._input(labelled)
        if given is None and following is not None and following.kind == "action":
            tool = reading.offered.find(name).tool
            if tool is not None and not takes_nothing(tool):
                return None, following.start  # no complete step, and another one begins
        if given is None:
            if reading.cut and following is None:
                draft = Draft(name, fault=Fault("truncated", "the reply ends before the input", name))
                return Found("react", (draft,), self._before(label.start)), stop
            given = Given(end=end)
        return self._call(name, given, label), stop

    def _blob(self, label: _Label, at: int, stop: int) -> Found | None:
        """A step as JSON behind an action label."""
        text, reading = self._text, self._reading
        start, end = scan.skip_blanks(text, scan.inside_fence(text, at)), stop
        if text.startswith(("```", "~~~"), at) and (fence := scan.fence_at(text, at)) is not None:
            end = fence.end
        if start >= end or not text.startswith(("{", "["), start):
            return None
        if text[start] == "[" and not text.startswith("{", scan.skip_blanks(text, start + 1)):
            return None  # brackets around a name
        try:
            value = read(text, start, reading.rules("```", at_end=True, is_call=True))
        except scan.NotJsonError as error:
            return Found("react", (Draft(fault=fault_of(error, start, reading)),), self._before(label.start))
        step = step_of(value.value)
        before = self._before(label.start)
        if step is not None:
            return self._with_note(found_of(step, reading, "react", before, max(value.end, min(end, stop))))
        if (body := as_object(value.value)) is not None and isinstance(body.get("name"), str):
            return self._with_note(Found("react", (draft_of(body),), before, end=max(end, value.end)))
        return None

    def _input(self, label: _Label) -> Given:
        following = self._walk.label(label.end)
        stop = following.start if following else len(self._text)
        if label.end < self._joint < stop:
            stop = self._joint
        given = read_input(self._text, label.end, stop, self._reading)
        if given.words and label.open_decoration and given.words.endswith(label.open_decoration):
            return replace(given, words=given.words.removesuffix(label.open_decoration).rstrip())
        return given

    def _call(self, name: str, given: Given, action: _Label) -> Found:
        reading, text = self._reading, self._text
        draft, warnings = bind(given, name, reading)
        end = max(given.end, action.end)
        behind = self._walk.label(end)
        is_open = reading.cut and behind is None and given.value is None and not given.is_json_text
        if is_open and draft.fault is None and not text[end:].strip():
            draft = Draft(name, fault=Fault("truncated", "the reply ends inside the input", name))
        elif given.value is not None and text[end : behind.start if behind else len(text)].strip(" \t\r\n)*_`"):
            warnings |= TRAILING
        return Found("react", (draft,), self._before(action.start), warnings | self._dropped(end), end=end)

    def _dropped(self, at: int) -> frozenset[ReplyWarning]:
        """What stands behind the end of the step and is not used."""
        warnings: set[ReplyWarning] = set()
        for label in self._walk.labels(at, bare_answer=self._thought):
            if label.kind == "observation" and self._text[label.end :].strip():
                warnings.add("hallucinated_observation")
            elif label.kind == "action":
                warnings.add("extra_actions_dropped")
            elif label.kind in _ANSWER_LABELS:
                warnings.add("final_dropped")
        return frozenset(warnings)

    def _answer_end(self, label: _Label) -> int:
        """Where an answer ends: at a question (few-shot run-on), where another step begins, or with the text."""
        begun = -1
        pending = False
        for following in self._walk.labels(label.end):
            if following.kind == "question":
                return following.start
            if following.kind == "answer" or (following.kind == "input" and pending):
                return begun if begun >= 0 else following.start
            if following.kind in ("thought", "observation", "action") and begun < 0:
                begun = following.start
            pending = following.kind == "action" or (pending and following.kind == "thought")
        return len(self._text)

    def _final(self, start: int, end: int, step: int, decoration: str = "") -> Found:
        text = self._text
        answer = text[start:end].strip()
        if decoration and answer.endswith(decoration):
            answer = answer.removesuffix(decoration).rstrip()
        if not answer:
            return Found("react", (), text, error=Fault("empty_final", "the final answer is empty"))
        dropped: set[ReplyWarning] = set()
        for label in self._walk.labels(end):
            if label.kind == "action":
                dropped.add("action_dropped")
            elif label.kind == "answer":
                dropped.add("final_dropped")
        end = end if end < len(text) else -1
        return Found("react", (), self._before(step), frozenset(dropped), final=answer, end=end)


_ANSWER_INLINE = re.compile(r"(?P<label>[^:：]{1,60})[:：]\s*(?P<text>.*)", re.DOTALL)
_BLOCK = re.compile(rf"^[ \t]*+(?P<value>\{{)|{scan.FENCES}", re.MULTILINE)
_STEP_KEY = re.compile(r"""\{\s*+(?:["']thought["']\s*+:|["']action(?:_input)?["']\s*+:)""")

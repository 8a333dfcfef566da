"""The step as one JSON object, `{"thought", "action", "action_input"}`: in schema mode and in ReAct text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from surefoot.core.parse.arguments import REPAIRED, fault_kind, where
from surefoot.core.parse.drafts import NO_WARNINGS, Draft, Found, Reading
from surefoot.core.parse.json_ladder import read
from surefoot.core.parse.json_strict import NotJsonError, as_list, as_object
from surefoot.core.parse.labels import is_answer_name
from surefoot.core.parse.react_input import Given, bind
from surefoot.core.parse.scan import fence_at, skip_blanks
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.reply import Fault, ReplyWarning

_NO_ACTION = re.compile(
    r"(?:none|n/a|na|null|nil|no action|no_function|无|無|没有)(?:[\s(（.。,，:：].*)?", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Step:
    """A decoded step. `more`: other steps stood beside it and are dropped."""

    action: str
    given: Given
    more: bool = False


def is_no_action(name: str) -> bool:
    """Whether a model wrote a name only to say that it takes no action."""
    return _NO_ACTION.fullmatch(name.strip(" \t\r\n`*_\"'[]")) is not None


def step_of(value: object) -> Step | None:
    """The step that a decoded value is: an object with an action, or the first of a list of them."""
    row = as_list(value)
    if row is not None:
        steps = [step for item in row if (step := step_of(item)) is not None]
        if not steps or len(steps) != len(row):
            return None
        return Step(steps[0].action, steps[0].given, more=len(steps) > 1)
    members: Mapping[str, object] | None = as_object(value)
    if members is None or not isinstance(action := members.get("action"), str):
        return None
    return Step(action, given_of(members.get("action_input")))


def steps_follow(text: str, at: int, limit: int, reading: Reading) -> bool:
    """Whether further steps stand behind one, bare or in fences, and nothing else."""
    more = False
    while (at := _BETWEEN.match(text, at, limit).end()) < limit:  # type: ignore[union-attr]  # it may be empty
        fence = fence_at(text, at)
        opening = skip_blanks(text, fence.inner) if fence is not None else at
        try:
            value = read(text, opening, reading.rules("```", at_end=True, is_call=True))
        except NotJsonError:
            return False
        if step_of(value.value) is None:
            return False
        at, more = max(value.end, fence.end if fence is not None else 0), True
    return more


def given_of(value: object) -> Given:
    """An action_input as what was given for an action."""
    if value is None:
        return Given()
    if isinstance(value, str):
        return Given(words=value, is_json_text=True) if value.strip() else Given()
    if isinstance(value, dict | list):
        return Given(value=value)  # type: ignore[reportUnknownArgumentType]  # decoded JSON
    return Given(words=json.dumps(value))


def found_of(step: Step, reading: Reading, form: str, content: str, end: int) -> Found:
    """What a step means: an answer, a call, or neither."""
    warnings: frozenset[ReplyWarning] = frozenset({"extra_actions_dropped"} if step.more else ())
    given = step.given
    if is_answer_name(step.action, reading.labels):
        text = given.words if given.value is None else json.dumps(given.value, ensure_ascii=False)
        if not text.strip():
            return Found(form, (), content, warnings, error=Fault("empty_final", "the answer is empty"))
        return Found(form, (), content, warnings, final=text.strip(), end=end)
    if is_no_action(step.action) and reading.offered.find(step.action).tool is None:
        return Found(form, (), content, warnings, error=Fault("no_step", "the action is none"))
    if not step.action.strip():
        return Found(form, (), content, warnings, error=Fault("missing_action", "the action has no name"))
    draft, told = bind(given, step.action, reading)
    return Found(form, (draft,), content, warnings | told, end=end)


def read_schema(text: str, reading: Reading) -> Found | None:
    """The step object that a schema held the model to; None if it is something else. The content is its thought."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        value = read(text, start, reading.rules("```", at_end=True, is_call=True))
    except NotJsonError as error:
        if not _STEP_KEY.match(text, start):
            return None
        fault = Fault(fault_kind(error, reading, has_end=False), where(error, start))
        return Found("schema", (Draft(fault=fault),))
    step = step_of(value.value)
    if step is None:
        return None
    members = as_object(value.value)
    thought = members.get("thought") if members is not None else None
    warnings: frozenset[ReplyWarning] = REPAIRED if value.repaired else NO_WARNINGS
    found = found_of(step, reading, "schema", thought if isinstance(thought, str) else "", value.end)
    return replace(found, warnings=found.warnings | warnings)


_BETWEEN = re.compile(r"[\s,;]*+")
_STEP_KEY = re.compile(r"""\{\s*+["']?(?:thought|action)""")

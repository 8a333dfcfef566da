"""What a model proposes, read from its reply: one JSON object, taken as tolerantly as nothing is guessed.

R16: a reply that holds no complete object is malformed. A wrong value inside an object is not: it reads as its default,
and the rules refuse or stop. No bracket is ever added, since half a decision is none.
Source: spec/planning.md, sections 2, 3 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeGuard, TypeVar, cast, get_args

from surefoot.core.parse.json_ladder import read
from surefoot.core.parse.json_strict import NotJsonError
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import UsageError
from surefoot.types.plan import RESERVED, PlanStep, StepKind
from surefoot.types.planning import ProposalKind
from surefoot.types.reflection import (
    AddRemediationSteps,
    AdjustDependencies,
    Adjustment,
    FullReplan,
    ProblemClass,
    ReflectionResult,
    RemediationStep,
    ReplanFromStep,
    ReplanningStrategy,
    RootCause,
    SkipSteps,
)
from surefoot.types.selection import ChangesFromPrevious, Replacement, ToolChange

Object = Mapping[str, object]
Word = TypeVar("Word", bound=str)

_MOST_OBJECTS = 200
"""Opening braces that are tried in one reply."""

LONGEST_ID = 64
"""Characters of the id of a step that somebody proposes: a name, and no room for a sentence."""

DECIDING: Mapping[ProposalKind, frozenset[str]] = {
    "select_initial": frozenset({"selected_tool_ids"}),
    "select_corrective": frozenset({"selected_tool_ids"}),
    "decompose": frozenset({"steps"}),
    "step_reflection": frozenset({"suggested_action"}),
    "overall_reflection": frozenset(
        {"should_replan", "replanning_strategy", "completion_percent", "problem_class", "repeated_failure"}
    ),
}
"""The fields from which something follows; an object within prose that has none of them speaks of something else."""

_SIGN = re.compile(r'\\.|["{}]', re.DOTALL)
_OPENED = re.compile(r"""\{\s*(?:["'}]|[\w$-]+\s*:|\Z)""")
"""How an object begins, or what somebody takes for one."""

_FENCE = re.compile(r"\s*(?:```\s*\w*\s*)?")


@dataclass(frozen=True, slots=True)
class _Found:
    """A whole object of a reply, and where it stands."""

    value: Object
    start: int
    end: int


def object_in(text: str) -> Object | None:
    """The first whole JSON object of a reply, bare, fenced or within prose; None where there is none."""
    found = next(_objects(text), None)
    return None if found is None else found.value


def decision_in(text: str, kind: ProposalKind) -> Object | None:
    """The object of a reply that is the decision asked for; None where no whole one is there.

    Within prose it is the one in which a field that decides is given. Where two that differ decide, one may be a quote,
    and nobody can say which. A reply in which an object is opened and never closed was cut off, or is no JSON: what
    stands in it, or before it, decides nothing.
    """
    found = list(_objects(text))
    if any(one is None for one in found):
        return None
    whole = [one for one in found if one is not None]
    own = [one.value for one in whole if any(one.value.get(name) is not None for name in DECIDING[kind])]
    if own:
        return own[0] if all(one == own[0] for one in own) else None
    bare = len(whole) == 1 and _FENCE.fullmatch(text, 0, whole[0].start) and _FENCE.fullmatch(text, whole[0].end)
    return whole[0].value if bare else None


def _objects(text: str) -> Iterator[_Found | None]:
    """The objects of a text that stand in no other, whole ones alone; None, and no more, for one that is not closed."""
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            made = read(text, at)
        except NotJsonError:
            end = _closed_at(text, at)
        else:
            end, value = made.end, object_of(made.value)
            if value is not None:
                yield _Found(value, at, end)
        if end < 0:
            if _OPENED.match(text, at):
                yield None
                return
            end = at + 1  # a brace of prose
        at = text.find("{", end)


def _closed_at(text: str, start: int) -> int:
    """Where the brace at `start` is closed, those in strings left out; -1 where it is not."""
    depth, is_quoted = 0, False
    for found in _SIGN.finditer(text, start):
        sign = found.group()
        if sign == '"':
            is_quoted = not is_quoted
        elif not is_quoted and sign in "{}":
            depth += 1 if sign == "{" else -1
            if not depth:
                return found.end()
    return -1


def text_of(value: object) -> str:
    """A text; "" for what is none."""
    return value if isinstance(value, str) else ""


def texts_of(value: object) -> tuple[str, ...]:
    """The texts of a list; one alone counts as a list of one."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(one for one in list_of(value) if isinstance(one, str) and one)


def list_of(value: object) -> Sequence[object]:
    """A list; an empty one for what is none."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()  # decoded JSON


def object_of(value: object) -> Object | None:
    """An object; None for what is none."""
    return cast("Object", value) if isinstance(value, Mapping) else None  # decoded JSON


def percent_of(value: object) -> int:
    """A whole number from 0 to 100; a text of digits counts."""
    if isinstance(value, str) and value.strip().rstrip("%").isdecimal():
        value = int(value.strip().rstrip("%")[:9])
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124  # not a number
        return 0
    return int(max(0, min(100, value)))


def is_true(value: object) -> bool:
    """Whether it is true, also as a word; everything else is false."""
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def one_of(value: object, words: tuple[Word, ...]) -> Word | None:
    """One of these words; None for any other value."""
    return next((word for word in words if word == value), None)


def root_cause_of(value: object) -> RootCause | None:
    """The category of a cause."""
    return one_of(value, get_args(RootCause))


# ------------------------------------------------------------------ steps


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step of a proposed plan: its id, and the step itself where its fields fit its kind."""

    step_id: str
    step: PlanStep | None


def draft_of(given: object) -> tuple[DraftStep, ...]:
    """The steps of a proposed plan in their order."""
    made: list[DraftStep] = []
    for at, one in enumerate(list_of(given)):
        members = object_of(one) or {}
        made.append(DraftStep(text_of(members.get("step_id")) or f"#{at + 1}", step_of(members)))
    return tuple(made)


def step_of(given: Object) -> PlanStep | None:
    """A step as a model writes it; None where its fields do not fit its kind, or its id is too long for a name.

    An instruction beside a tool and parameters beside another kind say nothing and are left out; a name will do for an
    instruction.
    """
    tool_id, step_id = text_of(given.get("tool_id")), text_of(given.get("step_id"))
    if len(step_id) > LONGEST_ID:
        return None
    kind = one_of(given.get("kind"), get_args(StepKind)) or "tool"
    kind = RESERVED.get(tool_id, kind) if kind == "tool" else kind
    is_tool = kind == "tool"
    after = given.get("postcondition")
    timeout_s = given.get("timeout", given.get("timeout_s"))
    limits = object_of(given.get("limits")) or {}
    words = (text_of(given.get(name)).strip() for name in ("instruction", "description", "step_name"))
    try:
        return PlanStep(
            step_id,
            text_of(given.get("step_name")),
            kind,
            tool_id,
            "" if is_tool else next((one for one in words if one), ""),
            texts_of(given.get("allowed_tools")),
            (object_of(given.get("parameters")) or {}) if is_tool else {},
            tuple(dict.fromkeys(texts_of(given.get("dependencies")))),
            required=given.get("required") is not False,
            expected_output=text_of(given.get("expected_output")),
            postcondition="non_empty" if after == "non_empty" else object_of(after) or None,
            must_succeed=is_true(given.get("must_succeed")),
            timeout_s=float(timeout_s) if _is_positive(timeout_s) else None,
            max_steps=_whole(limits.get("max_steps", given.get("max_steps"))) if kind == "agent" else None,
        )
    except UsageError:
        return None


def _is_positive(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 10**9  # seconds


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None


# ------------------------------------------------------------------ reflections


def reflection_result(given: Object, strategy: ReplanningStrategy | None) -> ReflectionResult:
    """An overall reflection; what is missing counts as empty, false or 0."""
    return ReflectionResult(
        *(text_of(given.get(name)) for name in ("overview", "diagnosis", "improvements", "decision", "lessons")),
        completion_percent=percent_of(given.get("completion_percent")),
        problem_class=one_of(given.get("problem_class"), get_args(ProblemClass)) or "other",
        repeated_failure=is_true(given.get("repeated_failure")),
        root_causes=texts_of(given.get("root_causes")),
        incorrect_assumptions=texts_of(given.get("incorrect_assumptions")),
        alternative_approaches=texts_of(given.get("alternative_approaches")),
        optimization_suggestions=texts_of(given.get("optimization_suggestions")),
        lessons_learned=texts_of(given.get("lessons_learned")),
        should_replan=is_true(given.get("should_replan")),
        replanning_strategy=strategy,
    )


def strategy_of(given: object) -> ReplanningStrategy | Literal["unknown"] | None:
    """A strategy as a model writes it: None for none, "unknown" for one of another name or no object at all."""
    if given is None:
        return None
    if isinstance(given, str):
        given = {"type": given}
    members = object_of(given) or {}
    match members.get("type"):
        case "full_replan":
            return FullReplan()
        case "replan_from_step":
            return ReplanFromStep(text_of(members.get("step_id")), text_of(members.get("reason")))
        case "skip_steps":
            return SkipSteps(tuple(dict.fromkeys(texts_of(members.get("step_ids")))), text_of(members.get("reason")))
        case "add_remediation_steps":
            given_steps = list_of(members.get("suggestions"))
            return AddRemediationSteps(tuple(one for each in given_steps if (one := _suggestion(each)) is not None))
        case "adjust_dependencies":
            return AdjustDependencies(tuple(_adjustments(members.get("adjustments"))))
        case _:
            return "unknown"


def strategy_name(given: object) -> str:
    """What a strategy calls itself."""
    members = object_of(given)
    return text_of(members.get("type")) if members is not None else text_of(given)


def _suggestion(given: object) -> RemediationStep | str | None:
    if isinstance(given, str):
        return given or None
    members = object_of(given)
    step = step_of(members) if members is not None else None
    if members is None or step is None:
        words = text_of(members.get("suggestion") or members.get("description")) if members is not None else ""
        return words or None
    return RemediationStep(
        step,
        text_of(members.get("insert_before")),
        text_of(members.get("insert_after")),
        object_of(members.get("target_parameters")),
    )


def suggested_steps(strategy: object) -> tuple[DraftStep, ...]:
    """The steps that `add_remediation_steps` suggests as such, also those that cannot be read; words are none."""
    made: list[DraftStep] = []
    for at, one in enumerate(list_of((object_of(strategy) or {}).get("suggestions"))):
        read_as = _suggestion(one)
        if isinstance(read_as, str) or one in (None, ""):
            continue
        step_id = text_of((object_of(one) or {}).get("step_id")) or f"#{at + 1}"
        made.append(DraftStep(step_id, read_as.step if read_as is not None else None))
    return tuple(made)


def remediation_of(given: Object) -> RemediationStep | None:
    """A step that is put in beside others; None where it cannot be read."""
    made = _suggestion(given)
    return made if isinstance(made, RemediationStep) else None


def _adjustments(given: object) -> list[Adjustment]:
    made: list[Adjustment] = []
    for one in list_of(given):
        members = object_of(one) or {}
        needs = members.get("depends_on")
        depends_on = None if needs is None else tuple(dict.fromkeys(texts_of(needs)))
        made.append(Adjustment(text_of(members.get("step_id")), depends_on, object_of(members.get("parameters"))))
    return made


# ------------------------------------------------------------------ selections


def claimed_changes(given: object) -> ChangesFromPrevious | None:
    """What a model says has changed; None where it says nothing."""
    members = object_of(given)
    if members is None:
        return None
    replaced = [object_of(one) or {} for one in list_of(members.get("replaced_tools"))]
    return ChangesFromPrevious(
        texts_of(members.get("kept_tools")),
        tuple(Replacement(*(text_of(one.get(name)) for name in ("old", "new", "reason"))) for one in replaced),
        tuple(_tool_changes(members.get("added_tools"))),
        tuple(_tool_changes(members.get("removed_tools"))),
    )


def _tool_changes(given: object) -> list[ToolChange]:
    made: list[ToolChange] = []
    for one in list_of(given):
        members = object_of(one)
        if members is not None:
            made.append(ToolChange(text_of(members.get("tool_id")), text_of(members.get("reason"))))
        elif isinstance(one, str):
            made.append(ToolChange(one))
    return made

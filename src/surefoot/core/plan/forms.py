"""The forms of the replies that are asked for: each field once, with its reader and its schema.

Readers take a reply as tolerantly as nothing is guessed. R16: a reply that holds no complete object is malformed. A
wrong value inside an object is not: it reads as its default, and the rules refuse or stop. No bracket is ever added,
since half a decision is none. `core/plan/schemas.py` makes the schema of a reply out of the same forms.
Source: spec/planning.md, sections 2, 3 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar, cast, get_args

from surefoot.core.parse.objects import read
from surefoot.core.parse.scan import NotJsonError
from surefoot.core.text import json_text
from surefoot.core.text.json import as_object
from surefoot.types import reflection
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import UsageError
from surefoot.types.plan import RESERVED, PlanStep, ProposalKind, StepKind
from surefoot.types.selection import ChangesFromPrevious, Replacement, ToolChange
from surefoot.types.settings import is_number

Object = Mapping[str, object]
Schema = Mapping[str, object]
T = TypeVar("T")
Word = TypeVar("Word", bound=str)
MALFORMED = "malformed_json"  # the refusal of a reply that holds no complete object
LONGEST_ID = 64  # characters of the id of a step that somebody proposes: a name, and no room for a sentence

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

_MOST_OBJECTS = 200  # opening braces that are tried in one reply
_SIGN = re.compile(r'\\.|["{}]', re.DOTALL)
_OPENED = re.compile(r"""\{\s*(?:["'}]|[\w$-]+\s*:|\Z)""")  # how an object begins, or what somebody takes for one
_FENCE = re.compile(r"\s*(?:```\s*\w*\s*)?")


def object_in(text: str) -> Object | None:
    """The first whole JSON object of a reply, bare, fenced or within prose; None where there is none."""
    found = next(_objects(text), None)
    return None if found is None else found[0]


def decision_in(text: str, kind: ProposalKind) -> Object | None:
    """The object of a reply that is the decision asked for; None where no whole one is there.

    Within prose it is the one in which a field that decides is given. Where two that differ decide, one may be a quote,
    and nobody can say which. A reply in which an object is opened and never closed was cut off, or is no JSON: what
    stands in it, or before it, decides nothing.
    """
    found = list(_objects(text))
    whole = [one for one in found if one is not None]
    if len(whole) < len(found):
        return None
    if own := [one for one, _, _ in whole if any(one.get(name) is not None for name in DECIDING[kind])]:
        return own[0] if all(one == own[0] for one in own) else None
    is_bare = len(whole) == 1 and _FENCE.fullmatch(text, 0, whole[0][1]) and _FENCE.fullmatch(text, whole[0][2])
    return whole[0][0] if is_bare else None


def _objects(text: str) -> Iterator[tuple[Object, int, int] | None]:
    """The objects of a text that stand in no other, with start and end; None, and no more, for one not closed."""
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            made = read(text, at)
        except NotJsonError:
            end, depth, is_quoted = -1, 0, False
            for found in _SIGN.finditer(text, at):  # where the brace is closed, those in strings left out
                sign = found.group()
                if sign == '"':
                    is_quoted = not is_quoted
                elif not is_quoted and sign in "{}":
                    depth += 1 if sign == "{" else -1
                    if not depth:
                        end = found.end()
                        break
        else:
            end, value = made.end, as_object(made.value)
            if value is not None:
                yield value, at, end
        if end < 0:
            if _OPENED.match(text, at):
                yield None
                return
            end = at + 1  # a brace of prose
        at = text.find("{", end)


def text_of(value: object) -> str:
    """A text; "" for anything else."""
    return value if isinstance(value, str) else ""


def texts_of(value: object) -> tuple[str, ...]:
    """The texts of a list; one alone counts as a list of one."""
    return tuple(one for one in ([value] if isinstance(value, str) else list_of(value)) if isinstance(one, str) and one)


def name_of(value: object) -> str:
    """A name; a number stands for its digits, and what is no name for its JSON, which the rules refuse as unknown."""
    if isinstance(value, str):
        return value
    return json_text(value) if value or type(value) in (int, float) else ""


def names_of(value: object) -> tuple[str, ...]:
    """The names of a list, each once; one alone counts as a list of one."""
    return tuple(dict.fromkeys(filter(None, map(name_of, list_of(value) or [value]))))


def list_of(value: object) -> Sequence[object]:
    """A list; an empty one for anything else."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()  # decoded JSON


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


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a reply: how its value is read, and what a decoder is held to.

    `schema` is "chapter" for words and "texts" for a list of them, as long as the run has them; None where it depends
    on the tools and steps that there are.
    """

    read: Callable[[object], object]
    schema: Schema | Literal["chapter", "texts"] | None = None


Form = Mapping[str, Field]  # the fields of an object by name, in the order in which they are written


def read_form(make: Callable[..., T], form: Form, given: Object, **own: object) -> T:
    """What an object says, with `own` in place of what it says or beside it."""
    fields = {name: field.read(given.get(name)) for name, field in form.items() if name not in own}
    return make(**fields, **own)


def _word(words: tuple[str, ...], other: str | None = None) -> Field:
    return Field(lambda value: one_of(value, words) or other, {"enum": list(words)})


def _list(make: Callable[..., object], form: Form) -> Field:
    return Field(lambda value: tuple(read_form(make, form, as_object(one) or {}) for one in list_of(value)))


CHAPTER, TEXTS = Field(text_of, "chapter"), Field(texts_of, "texts")
NAME, NAMES, OBJECT = Field(name_of), Field(names_of), Field(as_object)
LABEL = Field(lambda value: text_of(value) or "general", {"type": "string", "maxLength": 40})
PERCENT = Field(percent_of, {"type": "integer", "minimum": 0, "maximum": 100})
FLAG = Field(is_true, {"type": "boolean"})

SELECTION: Form = {
    "brief_reasoning": CHAPTER,
    "selected_tool_ids": NAMES,
    "task_type": LABEL,
    "selection_confidence": PERCENT,
}
REPLACEMENT: Form = {"old": NAME, "new": NAME, "reason": CHAPTER}
CHANGE: Form = {"tool_id": NAME, "reason": CHAPTER}
PLAN: Form = {"context_understanding": CHAPTER, "description": CHAPTER, "task_type": LABEL}
STEP_REFLECTION: Form = {
    **dict.fromkeys(("history_review", "error_analysis", "proposal"), CHAPTER),
    "root_cause_category": _word(get_args(reflection.RootCause)),
    "root_cause": CHAPTER,
    "is_recoverable": FLAG,
    "confidence": PERCENT,
    "analysis": CHAPTER,
    "suggested_action": OBJECT,
    "alternative_solutions": TEXTS,
}
OVERALL_REFLECTION: Form = {
    **dict.fromkeys(("overview", "diagnosis", "improvements", "decision", "lessons"), CHAPTER),
    **dict.fromkeys(("root_causes", "incorrect_assumptions", "alternative_approaches"), TEXTS),
    **dict.fromkeys(("optimization_suggestions", "lessons_learned"), TEXTS),
    "completion_percent": PERCENT,
    "problem_class": _word(get_args(reflection.ProblemClass), "other"),
    "repeated_failure": FLAG,
    "should_replan": FLAG,
    "replanning_strategy": OBJECT,
}
ADJUSTMENT: Form = {
    "step_id": NAME,
    "depends_on": Field(lambda value: None if value is None else names_of(value)),
    "parameters": OBJECT,
}
PLACE: Form = {"insert_before": NAME, "insert_after": NAME, "target_parameters": OBJECT}


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step of a proposed plan: its id, and the step itself where its fields fit its kind."""

    step_id: str
    step: PlanStep | None


def draft_of(given: object) -> tuple[DraftStep, ...]:
    """The steps of a proposed plan in their order."""
    steps = [as_object(one) or {} for one in list_of(given)]
    return tuple(DraftStep(name_of(one.get("step_id")) or f"#{at + 1}", step_of(one)) for at, one in enumerate(steps))


def step_of(given: Object) -> PlanStep | None:
    """A step as a model writes it; None where its fields do not fit its kind, or its id is too long for a name.

    An instruction beside a tool and parameters beside another kind say nothing and are left out; a name will do for an
    instruction.
    """
    tool_id, step_id = text_of(given.get("tool_id")), name_of(given.get("step_id"))
    kind = one_of(given.get("kind"), get_args(StepKind)) or "tool"
    kind = RESERVED.get(tool_id, kind) if kind == "tool" else kind
    is_tool, parameters = kind == "tool", as_object(given.get("parameters"))
    if len(step_id) > LONGEST_ID or (is_tool and parameters is None and given.get("parameters")):
        return None
    after = given.get("postcondition")
    timeout_s = given.get("timeout", given.get("timeout_s"))
    most = (as_object(given.get("limits")) or {}).get("max_steps", given.get("max_steps"))
    words = (text_of(given.get(name)).strip() for name in ("instruction", "description", "step_name"))
    try:
        return PlanStep(
            step_id,
            text_of(given.get("step_name")),
            kind,
            tool_id,
            "" if is_tool else next((one for one in words if one), ""),
            names_of(given.get("allowed_tools")),
            (parameters or {}) if is_tool else {},
            names_of(given.get("dependencies")),
            required=given.get("required") is not False,
            expected_output=text_of(given.get("expected_output")),
            postcondition="non_empty" if after == "non_empty" else as_object(after) or None,
            must_succeed=is_true(given.get("must_succeed")),
            timeout_s=float(timeout_s) if is_number(timeout_s) and 0 < timeout_s < 10**9 else None,
            max_steps=most if kind == "agent" and isinstance(most, int) and most is not True and most >= 1 else None,
        )
    except UsageError:
        return None


def remediation_of(given: object) -> reflection.RemediationStep | str | None:
    """A step that is put in beside others, or what it is to do in words; None where it is neither."""
    members = as_object(given)
    if members is None:
        return text_of(given) or None
    step = step_of(members)
    if step is None:
        return text_of(members.get("suggestion") or members.get("description")) or None
    return read_form(reflection.RemediationStep, PLACE, members, step=step)


def suggested_steps(strategy: object) -> tuple[DraftStep, ...]:
    """The steps that `add_remediation_steps` suggests as such, also those that cannot be read; words are none."""
    given = list_of((as_object(strategy) or {}).get("suggestions"))
    steps = zip(draft_of(given), given, strict=True)
    return tuple(step for step, one in steps if one not in (None, "") and not isinstance(remediation_of(one), str))


_SUGGESTIONS = Field(lambda given: tuple(filter(None, map(remediation_of, list_of(given)))))

STRATEGIES: Mapping[str, tuple[Callable[..., reflection.ReplanningStrategy], Form]] = {
    "adjust_dependencies": (reflection.AdjustDependencies, {"adjustments": _list(reflection.Adjustment, ADJUSTMENT)}),
    "add_remediation_steps": (reflection.AddRemediationSteps, {"suggestions": _SUGGESTIONS}),
    "skip_steps": (reflection.SkipSteps, {"step_ids": NAMES, "reason": CHAPTER}),
    "replan_from_step": (reflection.ReplanFromStep, {"step_id": NAME, "reason": CHAPTER}),
    "full_replan": (reflection.FullReplan, {}),
}
"""The five strategies, the smallest first."""


def strategy_of(given: object) -> reflection.ReplanningStrategy | Literal["unknown"] | None:
    """A strategy as a model writes it: None for none, "unknown" for one of another name or no object at all."""
    if given is None:
        return None
    members: Object = {"type": given} if isinstance(given, str) else as_object(given) or {}
    name = text_of(members.get("type"))
    return read_form(*STRATEGIES[name], members) if name in STRATEGIES else "unknown"


def claimed_changes(given: object) -> ChangesFromPrevious | None:
    """What a model says has changed; None where it says nothing."""
    members = as_object(given)

    def changes(value: object) -> tuple[ToolChange, ...]:
        named = [{"tool_id": one} if isinstance(one, str) else as_object(one) for one in list_of(value)]
        return tuple(read_form(ToolChange, CHANGE, one) for one in named if one is not None)

    tools = Field(changes)
    form = {"kept_tools": TEXTS, "replaced_tools": _list(Replacement, REPLACEMENT)}
    form |= {"added_tools": tools, "removed_tools": tools}
    return None if members is None else read_form(ChangesFromPrevious, form, members)

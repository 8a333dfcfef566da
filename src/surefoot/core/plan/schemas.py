"""The JSON Schema of each reply of planning: what a decoder is held to, so that a reply says what can be said.

Made of the forms (`core/plan/forms.py`) and of what there is to name. Chapters come first, so that reasoning precedes
the decision. Every object is closed and every field required, null where it is optional; tools and steps are named out
of those that there are. A model that fills in whatever it may, and makes it up (trait `optional_arguments`), is asked
for what the example of its template has and no more: where a schema ends an object that the example goes on with, a
small model is driven off its path. Source: spec/planning.md, section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from surefoot.core.plan import forms
from surefoot.core.plan.choose import listed_names, offered_names
from surefoot.core.plan.forms import Form, Schema, list_of
from surefoot.core.state.roles import PLANNER, SOLO
from surefoot.core.state.state import Planning, State
from surefoot.core.text import json_text, object_schema
from surefoot.core.text.json import as_object
from surefoot.core.view.request import REQUIRED_ONLY
from surefoot.types.dataclass import dataclass
from surefoot.types.plan import NON_EMPTY, ProposalKind, StepKind
from surefoot.types.reflection import AddRemediationSteps
from surefoot.types.tools import ToolSpec

MOST_IDS = 100  # names up to which they are listed; of more, any text will do
MOST_BRANCHES = 12  # tools up to which a decoder is held to the parameters of each
_LONGEST_PARAMETERS = 4_000  # characters of one tool's schema up to which it is written out
_DEEP = 3
_FEW_STEPS = 12  # steps that a model may plan that fills in whatever it may: it does not stop by itself
_MOST_TEXTS, _FEW_TEXTS = 6, 2
_LONGEST_INSTRUCTION = 600

_TEXT: Schema = {"type": "string"}
_NULL: Schema = {"type": "null"}
_NEW_ID: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"}
_REFERENCE: Schema = {"type": "string", "pattern": "^[{][{][A-Za-z0-9_.?-]{1,80}[}][}]$"}
_BOOLEAN: Schema = {"type": "boolean"}
_SCALARS: tuple[Schema, ...] = (_TEXT, {"type": "number"}, _BOOLEAN, _NULL)
_ANY_OBJECT: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [*_SCALARS, {"type": "array", "items": {"anyOf": [*_SCALARS]}}]},
}
"""What stands for parameters whose names are not known: nested no deeper, so that it comes to an end."""


@dataclass(frozen=True, slots=True)
class _Maker:
    """What schemas of one request have in common: the tools that may be planned with, and how much is asked for."""

    tools: tuple[ToolSpec, ...]
    chapter: Schema
    is_small: bool

    def of(self, form: Form, **own: Schema) -> dict[str, object]:
        """A form as a schema; `own` is what of it depends on this request."""
        words = {"chapter": self.chapter, "texts": _array(self.chapter, _FEW_TEXTS if self.is_small else _MOST_TEXTS)}
        fields: dict[str, Schema] = {}
        for name, field in form.items():
            known = words[field.schema] if isinstance(field.schema, str) else field.schema
            fields[name] = own.pop(name, None) or known or _TEXT
        return _object(**fields, **own)


def schema_for(state: State, planning: Planning, kind: ProposalKind, about: str = "") -> Schema:
    """The schema of the reply that is asked for; `about` is the step of a step's reflection."""
    named = planning.selected if planning.selected is not None else offered_names(state)
    tools = tuple(tool for name in named if (tool := state.tools.get(name)) is not None)
    chapter = {"type": "string", "maxLength": planning.config.chapter_max_chars}
    maker = _Maker(tools, chapter, is_small(state))
    match kind:
        case "select_initial" | "select_corrective":
            before, now = _one_of(planning.selected or ()), _one_of(listed_names(state, planning))
            is_again, more = kind == "select_corrective", dict[str, Schema]()
            if is_again and not maker.is_small:  # the engine computes what changed, whatever is said here
                more["changes_from_previous"] = _object(
                    kept_tools=_array(before),
                    replaced_tools=_array(maker.of(forms.REPLACEMENT, old=before, new=now)),
                    added_tools=_array(maker.of(forms.CHANGE, tool_id=now)),
                    removed_tools=_array(maker.of(forms.CHANGE, tool_id=before)),
                )
            chosen = _array(now, planning.config.selected_max, least=int(is_again))
            return maker.of(forms.SELECTION, selected_tool_ids=chosen, **more)
        case "decompose":
            most = min(planning.config.max_steps, _FEW_STEPS) if maker.is_small else planning.config.max_steps
            reflected = planning.strategy.strategy if planning.strategy is not None else None
            places = _places(planning, maker) if isinstance(reflected, AddRemediationSteps) else {}
            return maker.of(forms.PLAN, steps=_array({"anyOf": _steps(maker, places)}, most, least=1))
        case "step_reflection":
            # What may follow for a failed step.
            step = planning.steps[about].step
            mine = next((tool for tool in maker.tools if tool.name == step.tool_id), None)
            data = _object(instruction={"type": "string", "maxLength": _LONGEST_INSTRUCTION})
            if step.kind == "tool":
                data = _parameters(mine, maker) if mine is not None else _ANY_OBJECT
            others = [tool for tool in maker.tools if tool.name != step.tool_id] if step.kind == "tool" else []
            actions = [
                _object(type={"const": "retry_with_params"}, data=data),
                *(_object(type={"const": "retry_with_tool"}, data=_object(**one)) for one in _calls_of(others, maker)),
                _object(type={"const": "trigger_overall_reflection"}, data=maker.chapter),
            ]
            return maker.of(forms.STEP_REFLECTION, suggested_action={"anyOf": actions})
        case "overall_reflection":
            strategies = {"anyOf": [_NULL, *_strategies(planning, maker)]}
            return maker.of(forms.OVERALL_REFLECTION, replanning_strategy=strategies)


def is_small(state: State) -> bool:
    """Whether the model that is asked fills in whatever it may."""
    speaker = state.speakers.get(PLANNER) or state.speakers.get(SOLO)
    return speaker is not None and speaker.traits.get(REQUIRED_ONLY) == "no"


def _places(planning: Planning, maker: _Maker) -> dict[str, Schema]:
    not_done = tuple(name for name in planning.live if not planning.steps[name].is_done)
    return {
        "insert_before": _or_null(_one_of(not_done)),
        "insert_after": _or_null(_one_of(planning.live)),
        "target_parameters": {"anyOf": [_NULL, *_parameter_sets(planning, maker, not_done)]},
    }


def _steps(maker: _Maker, places: Mapping[str, Schema]) -> list[Schema]:
    made = [_step(maker, "tool", one, places) for one in _calls_of(maker.tools, maker)]
    names = tuple(tool.name for tool in maker.tools)
    words: dict[str, Schema] = {"instruction": {"type": "string", "maxLength": _LONGEST_INSTRUCTION}}
    kinds: tuple[StepKind, ...] = ("reasoning",) if maker.is_small else get_args(StepKind)
    for kind in kinds:
        if kind != "tool":
            more = {"allowed_tools": _array(_one_of(names))} if kind == "agent" and names else {}
            made.append(_step(maker, kind, {**words, **more}, places))
    return made


def _calls_of(tools: Sequence[ToolSpec], maker: _Maker) -> list[dict[str, Schema]]:
    """The fields of a call of one of these tools: each with its parameters, of very many the rest by name."""
    first, others = tools[:MOST_BRANCHES], tuple(tool.name for tool in tools[MOST_BRANCHES:])
    made: list[dict[str, Schema]] = [
        {"tool_id": {"const": tool.name}, "parameters": _parameters(tool, maker)} for tool in first
    ]
    return [*made, {"tool_id": _one_of(others), "parameters": _ANY_OBJECT}] if others else made


def _step(maker: _Maker, kind: StepKind, own: Mapping[str, Schema], places: Mapping[str, Schema]) -> Schema:
    fields: dict[str, Schema] = {"step_id": _NEW_ID, "step_name": {"type": "string", "maxLength": 80}}
    needs = _array(_NEW_ID, _FEW_STEPS if maker.is_small else MOST_IDS)
    fields |= {"kind": {"const": kind}, **own, "dependencies": needs, "must_succeed": _BOOLEAN}
    if not maker.is_small:
        fields["required"] = _BOOLEAN
        fields["expected_output"] = _or_null({"type": "string", "maxLength": 200})
        fields["postcondition"] = {"enum": [None, NON_EMPTY]}
        if kind == "tool":
            fields["timeout"] = _or_null({"type": "number", "exclusiveMinimum": 0})
        if kind == "agent":
            fields["limits"] = _or_null(_object(max_steps={"type": "integer", "minimum": 1}))
    return _object(**fields, **places)


def _parameter_sets(planning: Planning, maker: _Maker, names: Sequence[str]) -> list[Schema]:
    """The parameters of the tool of one of several steps, each once."""
    used = {planning.steps[name].step.tool_id for name in names}
    made = [_parameters(tool, maker) for tool in [one for one in maker.tools if one.name in used][:MOST_BRANCHES]]
    return list({json_text(one): one for one in made}.values()) if made else [_ANY_OBJECT]


def _parameters(tool: ToolSpec, maker: _Maker) -> Schema:
    """What a tool is called with, where each value may be a reference in its place."""
    schema = tool.parameters
    if len(json_text(schema)) > _LONGEST_PARAMETERS:
        return _ANY_OBJECT
    if not as_object(schema.get("properties")):
        return _object() if schema.get("additionalProperties") in (None, False) else _ANY_OBJECT
    return _closed(schema, 0, maker, frozenset(tool.injected))


def _closed(schema: Schema, depth: int, maker: _Maker, but: frozenset[str] = frozenset()) -> Schema:
    """An object with its properties and no others; what may be left out may be null, or is not shown."""
    required = list_of(schema.get("required"))
    fields: dict[str, Schema] = {}
    for name, node in (as_object(schema.get("properties")) or {}).items():
        value = _referable(as_object(node) or {}, depth, maker)
        if name not in but and (name in required or not maker.is_small):
            fields[name] = value if name in required else _or_null(value)
    return {**_object(**fields), **{key: schema[key] for key in ("$defs", "definitions") if key in schema}}


def _referable(node: Schema, depth: int, maker: _Maker) -> Schema:
    """A value in whose place a reference to the result of a step may stand."""
    kind = node.get("type")
    if kind == "string" and not {"enum", "const", "pattern", "format"} & set(node):
        return node
    inner: Schema = node
    if kind == "array" and depth < _DEEP:
        items = {"items": _referable(as_object(node["items"]) or {}, depth + 1, maker)} if "items" in node else {}
        inner = {"maxItems": MOST_IDS, **node, **items}
    elif kind == "object" and node.get("properties") and depth < _DEEP:
        inner = _closed(node, depth + 1, maker)
    if isinstance(node.get("anyOf"), list | tuple) and not kind:
        return {**node, "anyOf": [*list_of(node["anyOf"]), _REFERENCE]}  # any item will do
    return {"anyOf": [inner, _REFERENCE]}


def _strategies(planning: Planning, maker: _Maker) -> list[Schema]:
    """Those that this plan admits, the smallest first."""
    records = [planning.steps[name] for name in planning.live]
    still_open = tuple(one.step.step_id for one in records if one.is_open)
    may_go = (one.step for one in records if one.is_open and not one.step.must_succeed)
    left_out = tuple(step.step_id for step in may_go if step.kind != "response")
    not_done = tuple(one.step.step_id for one in records if not one.is_done)
    steps = [*_steps(maker, _places(planning, maker)), maker.chapter]
    most = 3 if maker.is_small else planning.config.max_steps
    own: dict[str, dict[str, Schema]] = {"full_replan": {}}
    own["add_remediation_steps"] = {"suggestions": _array({"anyOf": steps}, most, least=1)}
    if still_open:
        adjustment = maker.of(
            forms.ADJUSTMENT,
            step_id=_one_of(still_open),
            depends_on=_or_null(_array(_one_of(planning.live))),
            parameters={"anyOf": [_NULL, *_parameter_sets(planning, maker, still_open)]},
        )
        own["adjust_dependencies"] = {"adjustments": _array(adjustment, least=1)}
    if left_out:
        own["skip_steps"] = {"step_ids": _array(_one_of(left_out), least=1)}
    if not_done:
        own["replan_from_step"] = {"step_id": _one_of(not_done)}
    return [
        maker.of({"type": forms.NAME, **form}, type={"const": name}, **own[name])
        for name, (_, form) in forms.STRATEGIES.items()
        if name in own
    ]


def _object(**fields: Schema) -> dict[str, object]:
    return object_schema(fields)


def _array(items: Schema, most: int = MOST_IDS, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _one_of(names: Sequence[str]) -> Schema:
    return {"enum": list(names)} if 0 < len(names) <= MOST_IDS else _TEXT


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, _NULL]}

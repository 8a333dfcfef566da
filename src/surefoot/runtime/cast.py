"""Who plays which role in a run: models, their templates, and what is known of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from surefoot.core.state.roles import GUARD, PLANNER, ROLES, SOLO, THINKER, prompt_name
from surefoot.core.state.state import State
from surefoot.core.text.template import check_template
from surefoot.models.files import cache_directory
from surefoot.models.names import resolve
from surefoot.models.traits import LearntTrait, Remembered, load, save
from surefoot.models.wrapper import identity_of
from surefoot.prompts.load import template
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, ModelTraitLearnt, Speaker
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import CallMode, ModelSettings
from surefoot.types.ports import Model

Thinking = Literal["auto", "states", "plain", "none"]
"""How `mono` and the Thinker of `dual` are asked to think (spec/reasoners.md, section 6): in marked states, in plain
steps, or not at all; "auto" is "none" for a model that reasons by itself, else "states"."""

_PLACE = "{thinking}\n"
_MODES: tuple[CallMode, ...] = get_args(CallMode)


def chosen_templates(
    reasoner: str, thinking: Thinking, thinks: Set[str], replaced: Mapping[str, str]
) -> dict[str, str]:
    """The templates of a reasoner by name, with those that were replaced. `thinks`: roles that reason by themselves.

    Raises `UsageError` for a name that the reasoner has no use for, `ConfigError` for a template without its places.
    """
    if thinking not in get_args(Thinking):
        raise UsageError(f"unknown thinking style {thinking!r}; choose one of {', '.join(get_args(Thinking))}")
    chosen: dict[str, str] = {}
    for role in ROLES[reasoner]:
        style = ("none" if role in thinks else "states") if thinking == "auto" else thinking
        part = "" if style == "none" else template(f"thinking_{style}")
        for mode in _MODES:
            name = prompt_name(role, mode)
            spoken = "react" if reasoner == "plan" else reasoner  # its steps go as react does
            file = f"{spoken}_{name}" if role == SOLO else name
            chosen[name] = replaced[name] if name in replaced else template(file).replace(_PLACE, part)
    for name, text in replaced.items():
        if name not in chosen:
            raise UsageError(f"reasoner {reasoner!r} has no prompt {name!r}; it has {', '.join(chosen)}")
        check_template(text, f"prompts[{name!r}]")
    return chosen


REMEMBERED = "remembered"
"""The evidence of a trait that a run starts with."""
MUTE = "mute"
"""What a run learns of a model that answers nothing while tools are declared: no evidence of how well it calls."""
FILE_VARIABLE = "SUREFOOT_TRAITS_FILE"
"""Names the file in the environment; empty means that nothing is remembered."""


def traits_file() -> Path | None:
    """The user's file of learnt traits, beside the model files unless the environment says otherwise."""
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    return cache_directory().parent / "traits.json"


class LearntTraits:
    """The traits of one model in the user's file. Nothing is read before `known`, nothing written before `learn`.

    Models that have no endpoint (in-process ones, models of tests) are not remembered. A file that cannot be read or
    written is as good as none: it only saves the first request of a run.
    """

    def __init__(self, model: Model, path: Path | None) -> None:
        identity = identity_of(model)
        self._identity = identity
        self._path = path if identity != model.name else None
        self._known: Mapping[str, str] | None = None

    def known(self) -> Mapping[str, str]:
        """What is remembered, by trait."""
        if self._known is None:
            self._known = load(self._path, time.time()).traits_of(self._identity) if self._path else {}
        return self._known

    def learn(self, event: ModelTraitLearnt, run_id: str) -> None:
        """Remember one trait, unless it came from here or says nothing beyond its run."""
        if self._path is None or event.evidence == REMEMBERED or event.value == MUTE:
            return
        now = time.time()
        learnt = LearntTrait(event.value, event.evidence, now, (run_id,))
        whole = save(self._path, Remembered({self._identity: {event.trait: learnt}}), now)
        self._known = {**self.known(), **whole.traits_of(self._identity)}


OWN_REASONING = "own_reasoning"
"""Trait: "yes" says that the model reasons by itself and need not be asked to."""

MODE_TRAITS = ("native_tools", "text_steps")
"""Traits that move a run away from the call mode that it was started in."""


@dataclass(frozen=True, slots=True)
class Part:
    """A model in its role. `call_mode` is the user's own choice, which counts for more than what is known."""

    model: Model
    settings: ModelSettings
    call_mode: CallMode | Literal["auto"]
    calls_tools: bool
    learnt: LearntTraits

    def speaker(self) -> Speaker:
        """The part as a run's journal tells of it."""
        traits = dict(self.model.traits)
        if "schema" in self.model.modes:
            traits.setdefault("json_schema", "yes")  # until the endpoint refuses it
        if self.call_mode != "auto":
            may_have = {trait: value for trait, value in traits.items() if trait not in MODE_TRAITS}
            return Speaker(self.model.name, self.call_mode, may_have)
        first = self.model.modes[0]  # the first that the wire carries, and words for one who calls no tools
        return Speaker(self.model.name, "text" if first == "native" and not self.calls_tools else first, traits)

    def remembered(self) -> list[ModelTraitLearnt]:
        """What earlier runs of this user have learnt, and the adapter does not say itself."""
        if not (known := self.learnt.known()):
            return []
        declared, left_out = self.speaker().traits, () if self.call_mode == "auto" else MODE_TRAITS
        return [
            ModelTraitLearnt(self.model.name, trait, value, REMEMBERED)
            for trait, value in known.items()
            if declared.get(trait) != value and trait not in left_out
        ]


_NAMED_IN = {GUARD: "`judge` of GuardConfig", PLANNER: "`model` of PlanConfig"}
"""The roles beside those that speak in a run, and where a model is named for each."""

_BESIDE = frozenset(_NAMED_IN)


@dataclass(frozen=True, slots=True)
class Cast:
    """The parts by role."""

    parts: Mapping[str, Part]

    @property
    def speakers(self) -> dict[str, Speaker]:
        """All parts as the start of a run tells of them."""
        return {role: part.speaker() for role, part in self.parts.items()}

    @property
    def thinks(self) -> frozenset[str]:
        """The roles whose model reasons by itself, before it writes."""
        return frozenset(role for role, part in self.parts.items() if part.model.traits.get(OWN_REASONING) == "yes")

    def changes(self, state: State) -> dict[str, Speaker]:
        """The parts that go on otherwise than the run has had them: another model, or a call mode that was chosen."""
        if set(state.speakers) - _BESIDE != set(self.parts) - _BESIDE:
            has = " and ".join(state.speakers)
            raise UsageError(f"run {state.run_id} has the roles {has}: take it up with reasoner={state.reasoner!r}")
        for role in _BESIDE:
            if role in state.speakers and role not in self.parts:
                named, where = state.speakers[role].model, _NAMED_IN[role]
                raise UsageError(f"run {state.run_id} has {named} for its {role}: name it as {where} again")
        changed: dict[str, Speaker] = {}
        for role, kept in state.speakers.items():
            part = self.parts[role]
            is_other = part.model.name != kept.model
            if is_other or (part.call_mode not in ("auto", kept.start_mode)):
                changed[role] = part.speaker()
        return changed

    def remembered(self, roles: Sequence[str]) -> list[Event]:
        """What is remembered of the models in these roles; of a model that plays both, once."""
        found = {(one.model, one.trait): one for role in roles for one in self.parts[role].remembered()}
        return list(found.values())

    def newly_remembered(self, changes: Mapping[str, Speaker], state: State) -> list[Event]:
        """What is remembered of models that take the place of others."""
        return self.remembered([role for role, one in changes.items() if one.model != state.speakers[role].model])

    def learn(self, event: ModelTraitLearnt, run_id: str = "") -> None:
        """Remember what a run learnt of a model for the user's next; how a Thinker writes says nothing of calls."""
        if event.role == THINKER:
            return
        part = next((part for part in self.parts.values() if part.model.name == event.model), None)
        if part is not None:
            part.learnt.learn(event, run_id)

    @property
    def used(self) -> tuple[Model, ...]:
        """The models, each once."""
        return tuple({id(part.model): part.model for part in self.parts.values()}.values())


def cast_of(
    reasoner: str,
    models: Mapping[str, Model],
    settings: Mapping[str, ModelSettings],
    call_mode: CallMode | Literal["auto"],
) -> Cast:
    """The cast of a reasoner. Raises `UsageError` for a role without a model, and for a mode that a model lacks."""
    for role in ROLES[reasoner]:
        if role not in models:
            raise UsageError(f"reasoner {reasoner!r} needs a model for the role {role!r}; it has {', '.join(models)}")
        modes = models[role].modes
        if call_mode != "auto" and call_mode not in modes:
            raise UsageError(f"{models[role].name} cannot be spoken to in call mode {call_mode!r}; it has {modes}")
    path = traits_file()
    parts = {
        role: Part(models[role], settings[role], call_mode, role != THINKER, LearntTraits(models[role], path))
        for role in ROLES[reasoner]
    }
    for role in (role for role in _NAMED_IN if role in models):
        one = models[role]
        parts[role] = Part(one, settings[role], "auto", calls_tools=False, learnt=LearntTraits(one, path))
    return Cast(parts)


def by_role(
    reasoner: str,
    model: str | Model | Mapping[str, str | Model],
    settings: ModelSettings | Mapping[str, ModelSettings],
    fallback: str | Model | None,
    *,
    judge: str = "",
    planner: str = "",
) -> tuple[dict[str, Model], dict[str, ModelSettings]]:
    """Models and settings for each role; one that is given alone plays all of them.

    The stages of the guard have a model of their own where `judge` names one, or one is given for the role "guard"; so
    have the proposals of a plan, with `planner` and the role "planner".
    """
    roles = (*ROLES[reasoner], *_NAMED_IN)
    of_role = settings if isinstance(settings, Mapping) else dict.fromkeys(roles, settings)
    if unknown := [
        role for given in (model, settings) if isinstance(given, Mapping) for role in given if role not in roles
    ]:
        raise UsageError(f"reasoner {reasoner!r} has no role {unknown[0]!r}; it has {', '.join(roles)}")
    chosen = {role: of_role.get(role, ModelSettings()) for role in roles}
    if isinstance(fallback, str):
        fallback = resolve(fallback, settings=chosen[roles[0]])
    given = model if isinstance(model, Mapping) else dict[str, str | Model]({roles[0]: model})
    named = {role: name for role, name in ((GUARD, judge), (PLANNER, planner)) if name and role not in given}
    given = {**given, **named}
    models: dict[str, Model] = {}
    for role, one in given.items():
        if not isinstance(one, str) and fallback is not None:
            raise UsageError(f"a fallback goes with a model that is given by name, and {one.name} is given as it is")
        models[role] = resolve(one, settings=chosen[role], fallback=fallback) if isinstance(one, str) else one
    if not isinstance(model, Mapping):
        models = {**dict.fromkeys(ROLES[reasoner], models[roles[0]]), **models}
    return models, chosen


def judge_of(guard: GuardConfig | None) -> str:
    """The name of the model that is asked for the stages of the guard; "" where that is the run's own, or nobody."""
    if guard is None or guard.mode == "off" or guard.judge == "self":
        return ""
    return guard.judge

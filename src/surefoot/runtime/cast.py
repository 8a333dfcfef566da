"""Who plays which role in a run: models, their templates, and what is known of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from surefoot.core.state.roles import GUARD, PLANNER, ROLES, SOLO, THINKER, prompt_name
from surefoot.core.state.state import State
from surefoot.core.view.turns import check_template
from surefoot.models.files import cache_directory
from surefoot.models.names import resolve
from surefoot.models.traits import LearntTrait, Remembered, load, save
from surefoot.models.wrapper import identity_of
from surefoot.prompts.load import template
from surefoot.types.config import LoopConfig
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import Event, ModelTraitLearnt, Speaker
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import CallMode, ModelSettings
from surefoot.types.ports import Model
from surefoot.types.settings import of_type

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
        self._identity = identity_of(model)
        self._path = path if self._identity != model.name else None
        self._known: Mapping[str, str] | None = None

    def traits(self) -> Mapping[str, str]:
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
        self._known = {**self.traits(), **whole.traits_of(self._identity)}


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
    instead: Part | None = None

    def of(self, model: str) -> Part:
        """This part, or the one behind it that this model plays; this one where none does."""
        part: Part | None = self
        while part is not None and part.model.name != model:
            part = part.instead
        return part or self

    def speaker(self) -> Speaker:
        traits = dict(self.model.traits)
        if "schema" in self.model.modes:
            traits.setdefault("json_schema", "yes")  # until the endpoint refuses it
        if self.call_mode != "auto":
            may_have = {trait: value for trait, value in traits.items() if trait not in MODE_TRAITS}
            return Speaker(self.model.name, self.call_mode, may_have)
        first = self.model.modes[0]  # the first that the wire carries, and words for one who calls no tools
        return Speaker(self.model.name, "text" if first == "native" and not self.calls_tools else first, traits)

    def known_speaker(self) -> Speaker:
        """The part as the journal tells of it in the midst of a run, with what is remembered of its model."""
        speaker = self.speaker()
        known = {learnt.trait: learnt.value for learnt in self.remembered()}
        return replace(speaker, traits={**speaker.traits, **known})

    def remembered(self) -> list[ModelTraitLearnt]:
        """What earlier runs of this user have learnt, and the adapter does not say itself."""
        if not (known := self.learnt.traits()):
            return []
        declared, left_out = self.speaker().traits, () if self.call_mode == "auto" else MODE_TRAITS
        return [
            ModelTraitLearnt(self.model.name, trait, value, REMEMBERED)
            for trait, value in known.items()
            if declared.get(trait) != value and trait not in left_out
        ]


_NAMED_IN = {GUARD: "`judge` of GuardConfig", PLANNER: "`model` of PlanConfig"}
"""The roles beside those that speak in a run, and where a model is named for each."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The parts by role; behind each may stand others, one of which goes on when it fails."""

    parts: Mapping[str, Part]

    def part(self, state: State, role: str) -> Part:
        part = self.parts[role]
        return part if part.instead is None else part.of(state.speakers[role].model)

    @property
    def all(self) -> Iterator[Part]:
        for part in self.parts.values():
            behind: Part | None = part
            while behind is not None:
                yield behind
                behind = behind.instead

    @property
    def speakers(self) -> dict[str, Speaker]:
        """All parts as the start of a run tells of them."""
        return {role: part.speaker() for role, part in self.parts.items()}

    @property
    def thinks(self) -> frozenset[str]:
        """The roles whose model reasons by itself, before it writes."""
        return frozenset(role for role, part in self.parts.items() if part.model.traits.get(OWN_REASONING) == "yes")

    def check_prices(self, config: LoopConfig) -> None:
        """Raises `UsageError` where cost is limited and nobody knows what a model costs: the limit would not hold."""
        limits = (config.budget.max_cost_usd, config.plan.max_cost_usd if config.plan is not None else None)
        for part in self.all if limits != (None, None) else ():
            own = (part.settings.price_in, part.settings.price_out)
            if None in own and not getattr(part.model, "is_priced", False):
                raise UsageError(
                    f"max_cost_usd cannot hold: no price is known for {part.model.name}. Give ModelSettings(price_in=…,"
                    " price_out=…) in US dollars a million tokens, or install surefoot[prices], which knows many models"
                )

    def with_shares(self, config: LoopConfig, reasoner: str, roles: Collection[str] = ()) -> LoopConfig:
        """A configuration for runs of these roles, or of all here. Raises `UsageError` for a share that cannot hold."""
        able = [role for role in (*ROLES[reasoner], GUARD) if role in (roles or self.parts) and reasoner != "plan"]
        for role in config.budget.shares:
            if role not in able:
                held = f"this run has {' and '.join(able)}" if able else "a plan is limited as a whole"
                other = f", or start a run with a model for it: {_NAMED_IN[GUARD]}" if able and role == GUARD else ""
                raise UsageError(f"budget.shares: {role!r} cannot have a share: {held}. Leave it out{other}")
        if config.budget.shares and (config.budget.max_tokens, config.budget.max_cost_usd) == (None, None):
            raise UsageError("budget.shares: nothing to share; set max_tokens or max_cost_usd, or leave shares out")
        return config

    def changes(self, state: State, config: LoopConfig | None) -> dict[str, Speaker]:
        """The parts that go on otherwise than the run has had them: another model, or a call mode that was chosen.

        Where the last model has failed too, the first is asked again. `config` is a new one, which has to fit as well.
        """
        if state.speakers.keys() - _NAMED_IN.keys() != self.parts.keys() - _NAMED_IN.keys():
            has = " and ".join(state.speakers)
            raise UsageError(f"run {state.run_id} has the roles {has}: take it up with reasoner={state.reasoner!r}")
        for role, where in _NAMED_IN.items():
            if role in state.speakers and role not in self.parts:
                named = state.speakers[role].model
                raise UsageError(f"run {state.run_id} has {named} for its {role}: name it as {where} again")
        if config is not None:
            self.with_shares(config, state.reasoner, state.speakers)
        changed: dict[str, Speaker] = {}
        for role, kept in state.speakers.items():
            part = self.parts[role] if state.failure is not None else self.parts[role].of(kept.model)
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
        part = next((part for part in self.all if part.model.name == event.model), None)
        if part is not None:
            part.learnt.learn(event, run_id)

    @property
    def used(self) -> tuple[Model, ...]:
        return tuple({id(part.model): part.model for part in self.all}.values())


ModelChoice = str | Model | Sequence[str | Model]
"""A model, or several: each goes on when the one before it fails."""
ModelWrapper = Callable[[Model], Model]


def cast_of(
    reasoner: str,
    models: Mapping[str, Sequence[Model]],
    settings: Mapping[str, ModelSettings],
    call_mode: CallMode | Literal["auto"],
) -> Cast:
    """The cast of a reasoner. Raises `UsageError` for a role without a model, and for a mode that a model lacks."""
    path = traits_file()
    parts: dict[str, Part] = {}
    for role in (*ROLES[reasoner], *(role for role in _NAMED_IN if role in models)):
        if role not in models:
            raise UsageError(f"reasoner {reasoner!r} needs a model for the role {role!r}; it has {', '.join(models)}")
        own, mode = settings[role], "auto" if role in _NAMED_IN else call_mode
        calls_tools = role != THINKER and role not in _NAMED_IN
        part: Part | None = None
        for at, one in reversed(list(enumerate(models[role]))):
            if mode != "auto" and mode not in one.modes:
                raise UsageError(f"{one.name} cannot be spoken to in call mode {mode!r}; it has {one.modes}")
            part = Part(one, settings_instead(own) if at else own, mode, calls_tools, LearntTraits(one, path), part)
        assert part is not None  # noqa: S101  # `by_role` gives one at least
        parts[role] = part
    return Cast(parts)


def by_role(
    reasoner: str,
    model: ModelChoice | Mapping[str, ModelChoice],
    settings: ModelSettings | Mapping[str, ModelSettings],
    *,
    judge: str = "",
    planner: str = "",
    wrappers: Sequence[ModelWrapper] = (),
) -> tuple[dict[str, Sequence[Model]], dict[str, ModelSettings]]:
    """Models and settings for each role; those that are given alone play all of them.

    The stages of the guard have a model of their own where `judge` names one, or one is given for the role "guard"; so
    have the proposals of a plan, with `planner` and the role "planner".
    """
    roles = (*ROLES[reasoner], *_NAMED_IN)
    of_role = settings if isinstance(settings, Mapping) else dict.fromkeys(roles, settings)
    for one in of_role.values():
        of_type(ModelSettings)("settings", one)
    for name, told in (("model", model), ("settings", settings)):
        for role in told if isinstance(told, Mapping) else ():
            if role not in roles:
                raise UsageError(f"{name}: reasoner {reasoner!r} has no role {role!r}; it has {', '.join(roles)}")
    chosen = {role: of_role.get(role, ModelSettings()) for role in roles}
    given = model if isinstance(model, Mapping) else {roles[0]: model}
    named = {role: name for role, name in ((GUARD, judge), (PLANNER, planner)) if name and role not in given}
    if not isinstance(settings, Mapping):  # of the run's own model
        chosen |= {role: settings_instead(settings) for role, name in named.items() if name != model}
    models = {role: _resolved(one, chosen[role], wrappers) for role, one in {**given, **named}.items()}
    if not isinstance(model, Mapping):
        models = {**dict.fromkeys(ROLES[reasoner], models[roles[0]]), **models}
    return models, chosen


def _resolved(choice: ModelChoice, settings: ModelSettings, wrappers: Sequence[ModelWrapper]) -> Sequence[Model]:
    """The models of a choice, with the wrappers around each; only the last waits while its endpoint is left alone."""
    several = choice if isinstance(choice, Sequence) and not isinstance(choice, str) else [choice]
    if not several:
        raise UsageError("no model is given; name one, such as 'openai:gpt-5.1-mini'")
    found: list[Model] = []
    for at, one in enumerate(several):
        own = settings_instead(settings) if at else settings
        made = resolve(one, settings=own, waits=at == len(several) - 1) if isinstance(one, str) else one
        if isinstance(bare := made, type) or not hasattr(bare, "send"):
            raise ConfigError("model", one, "give a name, such as 'openai:gpt-5.1-mini' or 'local', or a Model")
        for wrap in reversed(wrappers):
            made = wrap(made)
        if not hasattr(made, "send"):
            raise UsageError(f"wrap_model: what comes back for {bare.name} is not a model; WrappedModel makes one")
        if made.name in (other.name for other in found):
            raise UsageError(f"{made.name} is given twice; a model that goes on for another needs another name")
        found.append(made)
    return found


def settings_instead(settings: ModelSettings) -> ModelSettings:
    """The settings for a model that goes on for another: prices and `extra` are those of the first."""
    return replace(settings, price_in=None, price_out=None, extra={})


def judge_of(guard: GuardConfig | None) -> str:
    """The name of the model that is asked for the stages of the guard; "" where that is the run's own, or nobody."""
    if guard is None or guard.mode == "off" or guard.judge == "self":
        return ""
    return guard.judge

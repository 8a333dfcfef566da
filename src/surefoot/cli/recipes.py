"""Which models and tools a run has, and a recipe that keeps it so that the run can be taken up again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import orjson

from surefoot.cli.options import Options
from surefoot.core.state.roles import ACTOR, ROLES, SOLO, THINKER
from surefoot.core.state.state import State
from surefoot.journal.memory import DATABASES
from surefoot.models.names import PROVIDERS
from surefoot.runtime.cast import Thinking
from surefoot.telling.text import without_password
from surefoot.tools.folders import STATE_VARIABLE, state_folder
from surefoot.types.errors import ConfigError, JournalError, UsageError

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model as it was named, and the base URL that was given for it.

    `withheld`: which of the two had a user and password in its URL, which were not kept.
    """

    model: str
    base_url: str | None = None
    withheld: tuple[str, ...] = ()

    def without_passwords(self) -> Chosen:
        model, base_url = without_password(self.model), without_password(self.base_url or "") or None
        withheld = ("model",) * (model != self.model) + ("base_url",) * (base_url != self.base_url)
        return Chosen(model, base_url, withheld)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where a run's models and tools come from, and how it reasons.

    `models` are by role; `use` are built-in tools, `tools`, `mcp` and `root` absolute paths. `settings` is the settings
    file that the run was started with, "" for none: it is not read again, and closed to the run's tools. So are
    `guard_files`, the rules and policies of the gate.
    """

    models: Mapping[str, Chosen]
    root: str
    use: tuple[str, ...]
    allow_hosts: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    reasoner: str = "react"
    thinking: Thinking = "auto"
    call_mode: str = "auto"
    temperature: float | None = None
    seed: int | None = None
    effort: str | None = None
    price_in: float | None = None
    price_out: float | None = None
    fallback: tuple[str, ...] = ()
    schema: Mapping[str, object] | None = None
    settings: str = ""
    guard_files: tuple[str, ...] = ()


def recipes_folder() -> Path:
    """Where all recipes are."""
    return state_folder("recipes")


def recipe_path(journal: str | Path, run_id: str) -> Path:
    """Where the recipe of a run is or would be."""
    at = str(journal)
    at = without_password(at) if at.startswith(DATABASES) else os.path.normcase(os.path.realpath(at))
    whose = sha256(os.fsencode(at)).hexdigest()[:16]
    return recipes_folder() / whose / f"{quote(run_id, safe='')[:_LONGEST_NAME]}.json"


def keep_recipe(journal: str | Path, run_id: str, recipe: Recipe) -> None:
    """Write it down, without passwords, for this user alone. Raises `JournalError` when that is not possible."""
    path = recipe_path(journal, run_id)
    kept = replace(recipe, models={role: chosen.without_passwords() for role, chosen in recipe.models.items()})
    fresh = path.with_suffix(".new")
    try:
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)  # also when it was there before
        fresh.unlink(missing_ok=True)  # what is opened next is new, so it has this mode
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(asdict(kept), option=orjson.OPT_INDENT_2))
        fresh.replace(path)  # whole or not at all
    except OSError as error:
        told = f"cannot write {path}: {error.strerror}; name another folder with ${STATE_VARIABLE}"
        raise JournalError(told) from error


def recipe_of(journal: str | Path, run_id: str) -> Recipe | None:
    """The recipe of a run; None when there is none. Raises `ConfigError` when it cannot be read as one."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - only what takes a run up again pays for it

    path = recipe_path(journal, run_id)
    try:
        recipe = TypeAdapter(Recipe).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        told = f"cannot be read ({type(error).__name__}); remove it and give the run's options again"
        raise ConfigError("recipe", str(path), told) from error
    if relative := [name for name in (recipe.root, *recipe.tools, *recipe.mcp) if not Path(name).is_absolute()]:
        raise ConfigError("recipe", str(path), f"names {relative[0]!r}, which is not an absolute path; remove it")
    return recipe


MODEL_VARIABLE = "SUREFOOT_MODEL"

_URL = ("http://", "https://")

_GO_WITH: Mapping[str, tuple[tuple[str, ...], str]] = {
    "thinker": (("dual",), "name its only model with --model"),
    "actor": (("dual",), "name its only model with --model"),
    "thinking": (("mono", "dual"), "leave it out"),
    "max_rounds": (("mono", "dual"), "limit it with --max-steps"),
    "approve_plan": (("plan",), "leave it out"),
    "review_plan": (("plan",), "leave it out"),
    "max_replans": (("plan",), "leave it out"),
    "max_parallel": (("plan",), "leave it out"),
}
"""Options that only some reasoners have a use for, and what to do with another one."""


def chosen_model(given: str | None) -> str:
    """The model: what was said, else the environment, else the embedded one."""
    return given or os.environ.get(MODEL_VARIABLE) or "local"


def chosen_reasoner(options: Options, earlier: Recipe | None, state: State) -> str:
    """The reasoner of a run; one that has begun keeps its own, and its prompts.

    Raises `UsageError` for another one, and for options that it has no use for.
    """
    before = state.reasoner if state.task else earlier.reasoner if earlier else ""
    said = options.reasoner or ""
    if before and said and said != before:
        kept = f"run {state.run_id} has the reasoner {before} and keeps it"
        raise UsageError(f"{kept}: leave --reasoner out, or start a new run")
    reasoner = before or said or "react"
    for name, (reasoners, remedy) in _GO_WITH.items():
        if options.get(name) is not None and reasoner not in reasoners:
            goes = f"--{name.replace('_', '-')} goes with --reasoner {' or '.join(reasoners)}"
            raise UsageError(f"{goes}, and this run has {reasoner}: {remedy}")
    if before and options.thinking and options.thinking != (earlier.thinking if earlier else "auto"):
        raise UsageError("a run keeps its prompts, and --thinking is part of them: leave it out, or start a new run")
    return reasoner


def chosen_models(options: Options, reasoner: str, earlier: Recipe | None, state: State) -> dict[str, Chosen]:
    """The models by role. Raises `UsageError` where one, or its password, has to be named again."""
    given = {SOLO: options.model, THINKER: options.thinker or options.model, ACTOR: options.actor or options.model}
    named = {role: given[role] or None for role in ROLES[reasoner]}
    if earlier is not None and set(earlier.models) == set(named):
        before = dict(earlier.models)
    else:  # what the journal names, else the default; one that came from elsewhere must not choose an address
        before: dict[str, Chosen] = {}
        for role, said in named.items():
            model = state.speakers[role].model if role in state.speakers else ""
            if model.lower().startswith(_URL) and not said:  # that is where a key would be sent
                told = f"name its model again with {_option(role)} {without_password(model)}"
                raise UsageError(f"this user has no recipe for this run; {told}")
            before[role] = Chosen(chosen_model(model or None))
    meant = _roles_for(options.base_url, {role: said or before[role].model for role, said in named.items()}, named)
    models: dict[str, Chosen] = {}
    for role, said in named.items():
        # another model is seldom behind the same address; and an address of its own is part of a URL#model
        kept = before[role] if said in (None, before[role].model) else Chosen(said)
        base_url = options.base_url if role in meant else None
        if "model" in kept.withheld and not said:
            told = f"give {_option(role)} again: {kept.model}"
            raise UsageError(f"the user and password in the model's URL were not kept; {told}")
        if "base_url" in kept.withheld and not base_url:
            raise UsageError(f"the user and password in the URL were not kept; give --base-url again: {kept.base_url}")
        models[role] = Chosen(said or kept.model, base_url or kept.base_url)
    return models


def _roles_for(base_url: str | None, models: Mapping[str, str], named: Mapping[str, str | None]) -> list[str]:
    """The roles that the base URL is meant for. Of a single model its adapter says when it has no use for it.

    Raises `UsageError` when it is for none, or for two providers: one of them would be spoken to in the other's place.
    """
    if not base_url:
        return []
    meant = [role for role in models if named[role]] or list(models)
    if SOLO not in models:
        meant = [role for role in meant if not models[role].lower().startswith((*_URL, "local:"))]
        meant = [role for role in meant if models[role] != "local"]
    if not meant:
        told = "local and URL#model have an address of their own; leave it out"
        raise UsageError(f"--base-url is for neither model: {told}")
    providers = (PROVIDERS.get(models[role].partition(":")[0]) for role in meant)
    if len({one.keys for one in providers if one is not None and one.keys}) > 1:  # keys tell providers apart
        told = " and ".join(f"{role} {without_password(models[role])}" for role in meant)
        raise UsageError(
            f"--base-url names one server, but would be used for two providers: {told}; write one of them as"
            " http://host:port/v1#model"
        )
    return meant


def _option(role: str) -> str:
    return "--model" if role == SOLO else f"--{role}"

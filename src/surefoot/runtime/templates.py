"""The templates that a run speaks with, by the names that `core/roles.py: prompt_name` gives them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Literal, get_args

from surefoot.core.roles import ROLES, SOLO, prompt_name
from surefoot.core.template import check_template
from surefoot.prompts.load import template
from surefoot.types.errors import UsageError
from surefoot.types.messages import CallMode

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
        raise UsageError(f"there is no thinking {thinking!r}; choose one of {', '.join(get_args(Thinking))}")
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

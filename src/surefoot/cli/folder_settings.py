"""What a settings file may say that was only found in the current folder, and that nobody named.

A folder may come from elsewhere, or a change to it may. So such a file chooses no model and sends no key anywhere, it
loosens neither the gate nor what else keeps untrusted text away, and it reads and writes nothing outside of its folder.
What tightens is taken, and so are limits, up or down: they cost time and money, and open nothing. What is not in the
table here, a new field, too, needs a person who names the file with `--config`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from surefoot.cli.guarding import FILES
from surefoot.types.errors import UsageError
from surefoot.types.guard import GuardConfig

Takes = Callable[[object, Path], bool]
"""Whether a value is taken from the file in that folder. Its default is always taken."""

_OPTIONS: Mapping[tuple[str, str], str] = {
    ("guard", "mode"): "--guard",
    ("guard", "rules_file"): "--rules",
}
"""What says the same on the command line."""


def _always(_value: object, _folder: Path) -> bool:
    return True


def _one_of(*taken: object) -> Takes:
    return lambda value, _: value in taken


def _up_to(most: float) -> Takes:
    return lambda value, _: isinstance(value, int | float) and value <= most


def _inside(value: object, folder: Path) -> bool:
    return isinstance(value, str) and (folder / value).resolve().is_relative_to(folder.resolve())


def _pages(value: object, _folder: Path) -> bool:
    return isinstance(value, list) and all(str(name).endswith(".md") for name in cast("list[object]", value))


def _all(names: str) -> dict[str, Takes]:
    return dict.fromkeys(names.split(), _always)


_GUARD = GuardConfig()

TAKEN: Mapping[str, Mapping[str, Takes]] = {
    "budget": _all("max_steps max_tokens max_cost_usd max_seconds reserve shares"),
    "loop": _all(
        "parse_faults nudges empty_replies continuations tool_result_chars context_tokens max_concurrent_tools "
        "tool_timeout_s tool_grace_s finish_with_reads repair on_conflict max_rounds deliverable actor_steps "
        "early_deliverable output_schema"
    ),
    "tool_profile": _all("include exclude max_tools require_verified pinned")
    | {"trust_description": _one_of("none")},  # more would weaken --verified-only, and so would `digests`
    "step_iteration": _all(
        "max_reattempts_per_step similarity_threshold on_limit_reached window max_period repeats enabled"
    ),
    "pre_hydration": _all(
        "custom_patterns resolution_tools timeout max_references max_context_tokens reference_timeout max_per_type "
        "max_concurrency max_input_chars path_style"
    ),
    "guard": _all("strict pins reasoning_retries sanitise stage_timeout_s max_backtracks max_trees")
    | {
        "rules_file": _inside,
        "cedar_file": _inside,
        "guess": _one_of("none"),
        "approvals": _one_of("deny"),
        "max_asks": _up_to(_GUARD.max_asks),
        "approval_timeout_s": _up_to(_GUARD.approval_timeout_s),
        "judge": _one_of("self"),
    },
    "plan": _all(
        "max_parallel step_timeout_s transient_retries reasks llm_repairs same_error_limit max_replans max_llm_calls "
        "max_tool_calls deadline_s max_tokens max_cost_usd no_progress_rounds completion_threshold select_all_below "
        "shortlist_max selected_max max_steps history_max_tokens chapter_max_chars approve_plan answer evaluators"
    ),
    "conventions": {"root": _inside, "files": _pages, "max_bytes": _always},
}
"""What is taken, by table and field, besides the default of a field."""


def check_place(path: Path) -> None:
    """Raise `UsageError` for a link that leaves the folder; what it leads to is not read."""
    if not path.resolve().is_relative_to(path.parent.resolve()):
        raise UsageError(
            f"{path}: this is a link that leads out of the folder, so it is not read; say --config {path.name} to use "
            "it, or --config '' to go without it"
        )


def check_files(path: Path, name: str, table: Mapping[str, object]) -> None:
    """Raise `UsageError` for a file outside of the folder, before anything of it is read."""
    for field in FILES if name == "guard" else ():
        if isinstance(table.get(field), str) and not _inside(table[field], path.parent):
            raise _refusal(path, name, field, "reads no file outside of it")


def check_found(path: Path, name: str, table: Mapping[str, object], default: object, made: object) -> None:
    """Raise `UsageError` for the first field of a table that needs `--config`. `made` is what the table gives."""
    for field, value in table.items():
        taken = TAKEN[name].get(field)
        if value != getattr(default, field, None) and not (taken is not None and taken(value, path.parent)):
            raise _refusal(path, name, field, f"cannot set {field} so")
    if isinstance(made, GuardConfig) and made.standing:
        raise _refusal(path, name, "rules_file", "cannot allow calls, as [[standing]] does")


def _refusal(path: Path, name: str, field: str, why: str) -> UsageError:
    """The value is not told: it may hold a key."""
    option = _OPTIONS.get((name, field))
    instead = f"give {option} instead" if option else "take the line out"
    return UsageError(
        f"{path}: [{name}] {field}: a file that was only found in this folder {why}; say --config {path.name} to use "
        f"all that this one says, or {instead}"
    )

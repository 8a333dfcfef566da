"""What a profile makes of a catalogue: what a run may see, what fell out where, and what the operator should hear.

Pure: the same tools and settings give the same report. Source: spec/primitives.md, sections 1.1, 1.5 and 1.6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

from surefoot.core.select.globs import matched
from surefoot.core.select.registration import MOST_SHOWN_CHARS, canonical, register, shown
from surefoot.core.select.verified import CHANGED, UNTRUSTED, unverified
from surefoot.types.errors import ConfigError
from surefoot.types.profile import Dropped, ProfileReport, ProfileStage, ToolProfile
from surefoot.types.tools import Catalogue, ToolSpec

MOST_NAMED = 5
MOST_NEAREST = 3
MOST_COMPARED = 500

_NEARNESS = 0.5

Reasons = Mapping[str, str]
"""Name of a tool -> why a stage drops it."""


def apply(
    tools: Catalogue | Sequence[ToolSpec],
    profile: ToolProfile,
    *,
    verified: Collection[str] = (),
    resolvers: Collection[str] = (),
) -> ProfileReport:
    """The tools that a profile leaves, in the order: registration, include, exclude, verified, cap.

    `verified` are names that the operator marked, besides the tools that are declared so, and `resolvers` the tools
    that prefetch calls. The order of patterns makes no difference. Takes some milliseconds for 10,000 tools and 20
    patterns. Raises `ConfigError` when more pinned tools are left than the cap lets through, and when a local tool has
    the name of another tool.
    """
    registered, unregistered = register(tools.tools if isinstance(tools, Catalogue) else tools)
    names = [tool.name for tool in registered]
    matches = _matches((*profile.include, *profile.exclude), names)
    doubts = unverified(registered, profile, verified)
    stages: tuple[tuple[ProfileStage, Reasons], ...] = (
        ("include", _not_included(names, profile, matches)),
        ("exclude", _excluded(profile, matches)),
        ("verified", doubts if profile.require_verified else {}),
    )
    left = names
    dropped = [*unregistered]
    for stage, reasons in stages:
        left = _drop(left, stage, reasons, dropped)
    left = _drop(left, "cap", _over_the_cap(left, profile), dropped)
    warnings = (
        *_of_patterns(profile, matches, names),
        *_missed_by_case(profile, left),
        *_of_verification(doubts),
        *_of_what_is_left(left, resolvers, any_tool=bool(registered or unregistered)),
    )
    return ProfileReport(tuple(left), tuple(dropped), warnings)


def refusal(name: str, visible: Sequence[str]) -> str:
    """What the model reads when it calls a tool that is not visible: that it did not run, and which names are near.

    Only the first 500 visible names are compared, so that a refusal costs some milliseconds at most.
    """
    by_cut = {candidate[:MOST_SHOWN_CHARS]: candidate for candidate in visible[:MOST_COMPARED]}
    near = get_close_matches(name[:MOST_SHOWN_CHARS], list(by_cut), n=MOST_NEAREST, cutoff=_NEARNESS)
    if near:
        return f"refused: not in profile; the nearest visible names are {_named(by_cut[cut] for cut in near)}"
    return "refused: not in profile" if visible else "refused: not in profile; no tool is visible"


def _drop(names: list[str], stage: ProfileStage, reasons: Reasons, dropped: list[Dropped]) -> list[str]:
    """The names that a stage leaves; the others go to `dropped`."""
    if not reasons:
        return names
    dropped.extend([(name, stage, reasons[name]) for name in names if name in reasons])
    return [name for name in names if name not in reasons]


def _matches(patterns: Iterable[str], names: Sequence[str]) -> dict[str, frozenset[str]]:
    forms = {pattern: canonical(pattern) for pattern in patterns}
    found = matched(set(forms.values()), names)
    return {pattern: found[form] for pattern, form in forms.items()}


def _not_included(names: Sequence[str], profile: ToolProfile, matches: Mapping[str, frozenset[str]]) -> Reasons:
    if not profile.include:
        return {}
    included = frozenset[str]().union(*(matches[pattern] for pattern in profile.include))
    return dict.fromkeys([name for name in names if name not in included], "no include pattern matches it")


def _excluded(profile: ToolProfile, matches: Mapping[str, frozenset[str]]) -> Reasons:
    reasons: dict[str, str] = {}
    for pattern in sorted(profile.exclude, reverse=True):  # the first in the alphabet is named, in whatever order
        reasons.update(dict.fromkeys(matches[pattern], f"exclude pattern {shown(pattern)} matches it"))
    return reasons


def _over_the_cap(names: Sequence[str], profile: ToolProfile) -> Reasons:
    if profile.max_tools is None or len(names) <= profile.max_tools:
        return {}
    wanted = frozenset(map(canonical, profile.pinned))
    pinned = [name for name in names if name in wanted]
    if len(pinned) > profile.max_tools:
        raise ConfigError(
            "max_tools", profile.max_tools, f"give at least {len(pinned)}, or pin fewer of {_named(pinned)}"
        )
    others = [name for name in names if name not in wanted]
    return dict.fromkeys(others[profile.max_tools - len(pinned) :], f"it is beyond max_tools={profile.max_tools}")


def _of_patterns(profile: ToolProfile, matches: Mapping[str, frozenset[str]], names: Sequence[str]) -> Iterable[str]:
    for field, patterns in (("include", profile.include), ("exclude", profile.exclude)):
        for pattern in sorted(set(patterns)):
            if not matches[pattern]:
                literal = "; [ and { stand for themselves" if "[" in pattern or "{" in pattern else ""
                yield f"{field} pattern {shown(pattern)} matched no tool{literal}"
    known = frozenset(names)
    for name in sorted({*profile.pinned, *profile.digests}):
        if canonical(name) not in known:
            yield f"pinned name {shown(name)} matched no tool"


def _missed_by_case(profile: ToolProfile, visible: Sequence[str]) -> Iterable[str]:
    forms = {pattern: canonical(pattern).casefold() for pattern in sorted(set(profile.exclude))}
    text = "".join((*visible, *forms))
    if text.casefold() == text:  # soon asked, and mostly so: case cannot be what is missed
        return
    folds = {name: name.casefold() for name in visible} if forms else {}
    changed = {name: fold for name, fold in folds.items() if fold != name}
    of_changed = matched(set(forms.values()), changed.values())  # where neither changes, a match would be an exclusion
    of_all = matched({form for pattern, form in forms.items() if form != pattern}, folds.values())
    for pattern, form in forms.items():
        found = of_all.get(form, of_changed[form])
        missed = sorted(name for name, fold in folds.items() if fold in found) if found else []
        if missed:
            yield f"exclude pattern {shown(pattern)} misses {_named(missed)} only by case"


def _of_verification(doubts: Reasons) -> Iterable[str]:
    changed = [name for name, why in doubts.items() if why == CHANGED]
    if changed:
        yield f"not verified, because changed since pinned: {_named(changed)}"
    untrusted = [name for name, why in doubts.items() if why == UNTRUSTED]
    if untrusted:
        yield f"[verified] in the description was not trusted: {_named(untrusted)}"


def _of_what_is_left(visible: Sequence[str], resolvers: Collection[str], *, any_tool: bool) -> Iterable[str]:
    if any_tool and not visible:
        yield "no tool is visible"
    hidden = sorted({canonical(name) for name in resolvers}.difference(visible))
    if hidden:
        yield f"prefetch calls tools that the model does not see: {_named(hidden)}"


def _named(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    all_ = list(names)
    more = f" and {len(all_) - MOST_NAMED} more" if len(all_) > MOST_NAMED else ""
    return ", ".join(map(shown, all_[:MOST_NAMED])) + more

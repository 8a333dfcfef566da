"""What a profile makes of a catalogue: what a run may see, what fell out where, and what the operator should hear.

A name can be made to pass for another: by characters that show nothing or steer how others are shown, by letters of
another script, by another form of the same characters. Such a tool is dropped before any pattern is asked. The same
tools and settings give the same report. Source: spec/primitives.md, section 1; one script: Unicode Technical
Standard 39, section 5.1.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby

from surefoot.core.text import json_text, shortened
from surefoot.core.text.look import SHOWS_NOTHING
from surefoot.core.text.words import matched, nearest
from surefoot.types.errors import ConfigError
from surefoot.types.selection import Dropped, ProfileReport, ProfileStage, ToolProfile
from surefoot.types.tools import Catalogue, ToolSpec

_MOST_NAMED, _MOST_NEAREST = 5, 3
_MOST_SHOWN_CHARS = 60
_MOST_MARKS_IN_A_ROW = 30
"""The most combining marks in a row, as in Unicode's Stream-Safe Text Format (Standard Annex 15, section 13)."""

_SYSTEMS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("CJK", "IDEOGRAPHIC"), frozenset({"Chinese", "Japanese", "Korean"})),
    **dict.fromkeys(("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"), frozenset({"Japanese"})),
    "BOPOMOFO": frozenset({"Chinese"}),
    "HANGUL": frozenset({"Korean"}),
}
"""First word of a letter's name in Unicode -> the ways of writing, of several scripts, that it belongs to."""

_CLAIM = "[verified]"  # what a description says when its author holds the tool for verified
_CLAIM_COUNTS_FOR = {"local": ("local",), "all": ("local", "remote"), "none": ()}
_CHANGED = "the tool has changed since it was pinned"
_UNTRUSTED = "its description claims [verified], which does not count for its origin"

Reasons = Mapping[str, str]  # name of a tool -> why a stage drops it


def apply(
    tools: Catalogue | Sequence[ToolSpec],
    profile: ToolProfile,
    *,
    verified: Collection[str] = (),
    resolvers: Collection[str] = (),
) -> ProfileReport:
    """The tools that a profile leaves, in the order: registration, include, exclude, verified, cap.

    `verified` are names that the operator marked, `resolvers` the tools that prefetch calls. The order of patterns
    makes no difference. Raises `ConfigError` when more pinned tools are left than the cap allows, and as `register`.
    """
    registered, unregistered = register(tools.tools if isinstance(tools, Catalogue) else tools)
    names = [tool.name for tool in registered]
    forms = {pattern: canonical(pattern) for pattern in (*profile.include, *profile.exclude)}
    of_form = matched(set(forms.values()), names)
    matches = {pattern: of_form[form] for pattern, form in forms.items()}
    doubts = _unverified(registered, profile, verified)

    included = frozenset[str]().union(*(matches[pattern] for pattern in profile.include))
    not_included = [name for name in names if name not in included] if profile.include else []
    excluded: dict[str, str] = {}
    for pattern in sorted(profile.exclude, reverse=True):  # the first in the alphabet is named, in whatever order
        excluded.update(dict.fromkeys(matches[pattern], f"exclude pattern {_quote(pattern)} matches it"))

    left = names
    dropped: list[Dropped] = [*unregistered]
    stages: tuple[tuple[ProfileStage, Reasons | None], ...] = (
        ("include", dict.fromkeys(not_included, "no include pattern matches it")),
        ("exclude", excluded),
        ("verified", doubts if profile.require_verified else {}),
        ("cap", None),  # it counts those that are left
    )
    for stage, reasons in stages:
        if why := _over_the_cap(left, profile) if reasons is None else reasons:
            dropped.extend([(name, stage, why[name]) for name in left if name in why])
            left = [name for name in left if name not in why]
    warnings = [*_warnings_of_patterns(profile, matches, names, left)]
    for doubt, warning in (
        (_CHANGED, "not verified, because changed since pinned"),
        (_UNTRUSTED, "[verified] in the description was not trusted"),
    ):
        if doubtful := [name for name, why in doubts.items() if why == doubt]:
            warnings.append(f"{warning}: {_names_text(doubtful)}")
    if (registered or unregistered) and not left:
        warnings.append("no tool is visible")
    if hidden := sorted({canonical(name) for name in resolvers}.difference(left)):
        warnings.append(f"prefetch calls tools that the model does not see: {_names_text(hidden)}")
    return ProfileReport(tuple(left), tuple(dropped), tuple(warnings))


def refusal(name: str, visible: Sequence[str]) -> str:
    """What the model reads when it calls a tool that is not visible: that it did not run, and which names are near."""
    if near := nearest(name, visible, _MOST_NEAREST):
        return f"refused: not in profile; the nearest visible names are {_names_text(near)}"
    return "refused: not in profile" if visible else "refused: not in profile; this run offers no tools"


def register(tools: Sequence[ToolSpec]) -> tuple[tuple[ToolSpec, ...], tuple[Dropped, ...]]:
    """The tools that may be registered, their names in NFC, and those that may not, under the names they came with.

    Raises `ConfigError` when a local tool has the name of another: a mistake, or somebody else's tool in place of ours.
    """
    names = [tool.name for tool in tools]
    text = "".join(names)
    if text.isascii() and text.isprintable() and " " not in text and len({*names, ""}) == len(names) + 1:
        return tuple(tools), ()  # in NFC and of one script, as it mostly is, and that is soon asked
    kept: dict[str, ToolSpec] = {}
    dropped: list[Dropped] = []
    for tool in tools:
        name = canonical(tool.name)
        if not name:
            fault = "the name is empty"
        elif not name.isprintable() or " " in name or not (name.isascii() or SHOWS_NOTHING.isdisjoint(name)):
            fault = "the name holds white space, or a character that shows nothing or steers how others are shown"
        else:
            # the first word of a letter's name; letters that are named otherwise count as scripts of their own
            scripts = {unicodedata.name(sign, sign).partition(" ")[0] for sign in name if sign.isalpha()}
            systems = [_SYSTEMS.get(script, frozenset({script})) for script in scripts]
            if not name.isascii() and systems and not systems[0].intersection(*systems):
                fault = "the letters of the name come from more than one script"
            else:
                fault = ""
        if not fault and name in kept:
            if tool.origin == "local":
                raise ConfigError("tools", tool.name, "another tool already has this name; give one of them another")
            fault = "another tool already has this name"
        if fault:
            dropped.append((tool.name, "registration", fault))
        else:
            kept[name] = tool if name == tool.name else replace(tool, name=name)
    return tuple(kept.values()), tuple(dropped)


def canonical(text: str) -> str:
    """A name or a pattern in NFC. Too many combining marks in a row become one sign that no name may have.

    Ordering such marks takes time that grows with the square of their number, and anybody may choose a name.
    """
    if text.isascii():
        return text
    if any(map(unicodedata.combining, text)):  # soon asked, and mostly none is
        for is_mark, run in groupby(text, lambda character: unicodedata.combining(character) != 0):
            if is_mark and sum(1 for _ in run) > _MOST_MARKS_IN_A_ROW:
                return "\0"
    return unicodedata.normalize("NFC", text)


def digest_of_tool(tool: ToolSpec) -> str:
    """What pins a tool: "sha256:" and the SHA-256 in hex over its name (in NFC), description and parameters."""
    text = json_text([canonical(tool.name), tool.description, dict(tool.parameters)], sort_keys=True)
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _unverified(tools: Sequence[ToolSpec], profile: ToolProfile, verified: Collection[str]) -> dict[str, str]:
    """Of registered tools those that are not verified, by name, and why.

    A digest of the profile that no longer holds outweighs a mark and a claim: what was looked at is not what is here.
    """
    marked = frozenset(map(canonical, verified))
    digests = {canonical(name): digest for name, digest in profile.digests.items()}
    doubts: dict[str, str] = {}
    for tool in tools:
        if tool.name in digests:
            if digests[tool.name] != digest_of_tool(tool):
                doubts[tool.name] = _CHANGED
        elif tool.verified or tool.name in marked:
            continue
        elif _CLAIM not in tool.description:
            doubts[tool.name] = "nothing verifies the tool"
        elif tool.origin not in _CLAIM_COUNTS_FOR[profile.trust_description]:
            doubts[tool.name] = _UNTRUSTED
    return doubts


def _over_the_cap(names: Sequence[str], profile: ToolProfile) -> Reasons:
    if profile.max_tools is None or len(names) <= profile.max_tools:
        return {}
    wanted = frozenset(map(canonical, profile.pinned))
    pinned = [name for name in names if name in wanted]
    if len(pinned) > profile.max_tools:
        fewer = f"give at least {len(pinned)}, or pin fewer of {_names_text(pinned)}"
        raise ConfigError("max_tools", profile.max_tools, fewer)
    others = [name for name in names if name not in wanted]
    return dict.fromkeys(others[profile.max_tools - len(pinned) :], f"it is beyond max_tools={profile.max_tools}")


def _warnings_of_patterns(
    profile: ToolProfile, matches: Mapping[str, frozenset[str]], names: Sequence[str], visible: Sequence[str]
) -> Iterator[str]:
    for field, patterns in (("include", profile.include), ("exclude", profile.exclude)):
        for pattern in sorted(set(patterns)):
            if not matches[pattern]:
                literal = "; [ and { stand for themselves" if "[" in pattern or "{" in pattern else ""
                yield f"{field} pattern {_quote(pattern)} matched no tool{literal}"
    known = frozenset(names)
    for name in sorted({*profile.pinned, *profile.digests}):
        if canonical(name) not in known:
            yield f"pinned name {_quote(name)} matched no tool"
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
        if missed := sorted(name for name, fold in folds.items() if fold in found):
            yield f"exclude pattern {_quote(pattern)} misses {_names_text(missed)} only by case"


def _quote(text: str) -> str:
    return repr(shortened(text, _MOST_SHOWN_CHARS))


def _names_text(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
    return ", ".join(map(_quote, every[:_MOST_NAMED])) + more

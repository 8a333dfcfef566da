"""Which of several ways to go on comes first, and what the model is told of the one that is taken.

Source: spec/guard.md, section 3.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.core.gate.choosing import Choosing
from surefoot.core.gate.effects import guess
from surefoot.core.gate.perception import Frame
from surefoot.core.text import json_text
from surefoot.core.told import attribute, plain
from surefoot.types.decisions import Allow, Decision
from surefoot.types.guard import HypothesisBranch
from surefoot.types.plan import RESERVED
from surefoot.types.tools import Effect, ToolSpec, Trust

RECOMMENDED, RECOMMENDED_WORDS, CLOSED = "guard/recommended", "guard/recommended_words", "guard/closed"
"""The templates of what a model is told: a call, words, or that nothing survived."""

LONGEST_ARGUMENTS = 2_000
"""Characters of the arguments of a branch that are shown."""

_EFFECTS: Mapping[Effect | None, int] = {"read": 0, "write": 1, "communicate": 2, "transact": 3, "delete": 4, None: 5}
_REDUNDANCY = {"minimal": 0, "moderate": 1, "high": 2}

Rank = tuple[bool, int, bool, int, float, str]


def in_order(
    branch: HypothesisBranch, decision: Decision, spec: ToolSpec | None, guessing: Literal["own", "all", "none"]
) -> Rank:
    """Where a branch stands: what is allowed before what is asked, then by what it does, and how sure that is.

    Words do what a read does.
    """
    is_words = branch.tool_name in RESERVED
    effect: Effect | None = "read" if is_words else guess(spec, guessing).effect if spec is not None else None
    is_declared = is_words or (spec is not None and spec.declared)
    return (
        decision != Allow(),
        _EFFECTS[effect],
        not is_declared,
        _REDUNDANCY[branch.redundancy_level],
        -branch.necessity_score,
        branch.branch_id,
    )


def shown_calls(branch: HypothesisBranch, frame: Frame, trust: Trust) -> str:
    """The arguments of a branch as data: a model wrote them, perhaps after it had read foreign text."""
    told = "\n".join(json_text(one) for one in branch.argument_sets)[:LONGEST_ARGUMENTS]
    return frame.around(plain(frame.cleaned(told)), "the agent", trust)


def recommended(now: Choosing, prompts: Mapping[str, str], frame: Frame, trust: Trust, most: int) -> str:
    """What the model is told where it goes on with a branch, or after nothing survived; "" where there is nothing.

    It is told once: behind the turn that follows, it stands where it was said.
    """
    decision = now.decision
    if decision is None:
        return ""
    branch = now.branch(decision.selected_branch_id)
    if branch is None:
        if now.trees < most or not now.rejected:
            return ""
        reasons = dict.fromkeys(
            f"- {attribute(out.tool_name)}: {plain(one.reason)}"
            for one in now.rejected
            if (out := now.branch(one.branch_id)) is not None
        )
        return prompts[CLOSED].format(reasons="\n".join(reasons)).strip()
    if branch.tool_name in RESERVED:
        return prompts[RECOMMENDED_WORDS].strip()
    calls = "one call" if len(branch.argument_sets) == 1 else f"{len(branch.argument_sets)} calls, one for each line"
    arguments = shown_calls(branch, frame, trust)
    return prompts[RECOMMENDED].format(tool=attribute(branch.tool_name), calls=calls, arguments=arguments).strip()

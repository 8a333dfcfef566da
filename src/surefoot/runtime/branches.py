"""Ask a model for ways to go on, and which of them to take. What goes wrong is on record, and opens nothing.

Source: spec/guard.md, sections 3.4, 3.6 and 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from surefoot.core.branches import is_direct, step_now, survivors
from surefoot.core.gate.record import GateRecord
from surefoot.core.parse.json_strict import MOST_NESTED, nested_deeper_than
from surefoot.core.parse.validate import validate
from surefoot.core.proposals import MOST_BRANCHES, accepted, commit_prompt, hypotheses_prompt
from surefoot.core.running import choosing_now
from surefoot.core.state import State
from surefoot.core.text import clean
from surefoot.core.trajectory import recalled
from surefoot.types.decisions import Deny
from surefoot.types.events import Event
from surefoot.types.guard import CommitmentDecision, Flow, HypothesisBranch, HypothesisTree
from surefoot.types.guard_events import BranchCommitted, BranchRejected, HypothesesMade
from surefoot.types.plan import RESERVED
from surefoot.types.tools import Catalogue

if TYPE_CHECKING:
    from surefoot.runtime.ask import Asker, Reply

_LOG = logging.getLogger("surefoot.gate")
LONGEST_REASON = 200
_NOTHING: Mapping[str, object] = {}


async def hypothesised(asker: Asker, state: State, gate: GateRecord, tree_id: str) -> HypothesesMade:
    """What memory knows, and what a model names; without its reply what memory knows alone."""
    found: list[HypothesisBranch] = []
    unfit = 0
    if gate.known.config.memory and asker.world.paths is not None:
        known = asker.world.paths.of(state.tools)
        found += [one for one in recalled(state, known.values()) if _fits(one, state.tools) is not None]
        found = found[: MOST_BRANCHES - 1]
    reply = await asker.ask(hypotheses_prompt(state, gate))
    recommended = ""
    if reply is not None:
        told = cast("list[Reply]", reply["branches"])  # as the schema has it
        named = [_branch(one) for one in told if not nested_deeper_than(one, MOST_NESTED)]  # as in a model's own calls
        fitting = [fit for one in named if (fit := _fits(one, state.tools)) is not None]
        unfit = len(told) - len(fitting)
        wanted = reply.get("recommended_branch_id")
        recommended = next((_key(one) for one in fitting if one.branch_id == wanted and wanted), "")
        found += fitting
    branches, dropped = accepted(state, found)
    chosen = next((one.branch_id for one in branches if _key(one) == recommended), None)
    tree = HypothesisTree(tree_id, step_now(state), state.steps + 1, branches, chosen)
    return HypothesesMade(tree, dropped + unfit, asker.asking())


def _key(branch: HypothesisBranch) -> object:
    return branch.tool_name, branch.argument_sets


def _branch(told: Reply) -> HypothesisBranch:
    """A branch as a model wrote it. Of its words none decides anything."""
    name = clean(str(told["tool_name"]))
    sets = cast("list[Mapping[str, object]]", told.get("argument_sets") or [])  # as the schema has it
    flows = cast("Mapping[str, object]", told.get("flows") or _NOTHING)  # as above
    return HypothesisBranch(
        clean(str(told.get("branch_id") or "")),
        "",
        name,
        (_NOTHING,) if name in RESERVED else tuple(sets),
        clean(str(told.get("rationale") or ""))[:LONGEST_REASON],
        {clean(name): flow for name, one in flows.items() if (flow := _flow(one)) is not None},
        cast("Literal['low', 'medium', 'high']", told.get("risk_level", "low")),
        float(cast("float", told.get("necessity_score", 0.5))),
        cast("Literal['minimal', 'moderate', 'high']", told.get("redundancy_level", "minimal")),
    )


def _flow(told: object) -> Flow | None:
    if not isinstance(told, Mapping):
        return None
    given = cast("Mapping[str, object]", told)  # JSON: text keys
    return Flow(clean(str(given.get("source") or ""))[:80], clean(str(given.get("kind") or "any"))[:80])


def _fits(branch: HypothesisBranch, tools: Catalogue) -> HypothesisBranch | None:
    """The branch with its arguments as its tool takes them, each set once; None where one does not fit."""
    spec = tools.get(branch.tool_name)
    if spec is None:
        return branch  # whoever accepts it knows whether it is words
    sets: list[Mapping[str, object]] = []
    for arguments in branch.argument_sets:
        checked = validate(arguments, spec.parameters)
        if checked.errors:
            return None
        if checked.value not in sets:
            sets.append(checked.value)
    return replace(branch, argument_sets=tuple(sets))


async def committed(asker: Asker, state: State, gate: GateRecord, _: str) -> BranchCommitted:
    """The branch that a model chooses among those that the gate lets pass; without its word the first in order."""
    now = choosing_now(state)
    assert now.tree is not None  # noqa: S101  # the move was made from this state
    left = [branch for branch, decision, _ in survivors(state, now.tree) if not isinstance(decision, Deny)]
    reply = await asker.ask(commit_prompt(state, gate, left))
    named = next((one for one in left if reply is not None and one.branch_id == reply["branch_id"]), None)
    branch = named or left[0]
    reason = clean(str(reply["reason"]))[:LONGEST_REASON] if reply is not None else "the first in order"
    by = "model" if named is not None else "order"
    decision = CommitmentDecision(now.tree.tree_id, branch.branch_id, by, reason, now.rejected)
    return BranchCommitted(decision, asker.asking(), is_direct(state, branch))


def log_tree(event: Event) -> None:
    """Tell the log `surefoot.gate` which ways to go on there are and what comes of them; of other events nothing."""
    match event:
        case HypothesesMade(tree, dropped):
            names = tuple(branch.tool_name for branch in tree.branches)
            _LOG.info("step %s, tree %s: branches of %r, %d dropped", tree.step_id, tree.tree_id, names, dropped)
        case BranchRejected(tree_id, branch_id, rule):
            _LOG.info("tree %s: branch %s is out by %s", tree_id, branch_id, rule)
        case BranchCommitted(decision):
            _LOG.info("tree %s: %s taken by %s", decision.tree_id, decision.selected_branch_id or "none", decision.by)
        case _:
            pass

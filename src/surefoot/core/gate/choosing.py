"""How far the choice between ways to go on has come in a step: part of what the gate keeps.

Source: spec/guard.md, section 3.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.core.text import json_text
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import CommitmentDecision, HypothesisBranch, HypothesisTree, Rejection

RUN = "run"
"""The step that a run without a plan is."""

CALL_FAILED = "call_failed"
"""Under which a branch is out whose call ran and failed; it may be named again later, unlike what the gate refused."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """The newest tree of a step, and what came of it.

    `point` is how many turns there were when the tree was made or a branch of it taken; `trees` how many in a row were
    made there. `rejected` is out of this tree, `closed` what the gate refused in this step (`key_of_branch`).
    `failures` counts the branches of this step that were taken and failed, `decision` is what was chosen last, `made`
    the number of the turn that was written for it, and `turns` counts such turns: each is a step that nobody was asked
    for (`core/budget.py`).
    """

    tree: HypothesisTree | None = None
    point: int = 0
    trees: int = 0
    rejected: tuple[Rejection, ...] = ()
    closed: frozenset[str] = frozenset()
    failures: int = 0
    decision: CommitmentDecision | None = None
    made: int = 0
    turns: int = 0

    @property
    def taken(self) -> HypothesisBranch | None:
        """The branch that is taken and has not failed."""
        branches = self.tree.branches if self.tree is not None else ()
        return next((branch for branch in branches if branch.status == "committed"), None)

    def branch(self, branch_id: str | None) -> HypothesisBranch | None:
        """The branch of the newest tree with that id."""
        branches = self.tree.branches if self.tree is not None else ()
        return next((branch for branch in branches if branch.branch_id == branch_id), None)


def key_of_branch(tool_name: str, argument_sets: tuple[Mapping[str, object], ...]) -> str:
    """What makes two branches the same: the tool, and the arguments whatever their order."""
    return f"{tool_name}\0{json_text(sorted(json_text(one, sort_keys=True) for one in argument_sets))}"

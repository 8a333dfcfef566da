"""What the gate keeps of a run, and its question to a person. Source: spec/guard.md, sections 3.4, 4.9 and 4.11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from surefoot.core.gate.effects import guess
from surefoot.core.gate.origins import Shown, having_read, set_of
from surefoot.core.gate.roles import leaves_of, sums_of
from surefoot.core.gate.sources import Known
from surefoot.core.text.json import json_text
from surefoot.core.text.look import in_full
from surefoot.core.text.records import LONGEST_SENTENCE
from surefoot.core.text.values import host_of, norm_of
from surefoot.types.dataclass import dataclass, field, replace
from surefoot.types.guard import CommitmentDecision, Evidence, Grounds, HypothesisBranch, HypothesisTree, Rejection
from surefoot.types.guard_events import JudgementMade
from surefoot.types.inner import Refused, Started, Sum
from surefoot.types.rules import Role
from surefoot.types.tools import ToolResult, ToolSpec

BY_MODEL = "model-"  # how the ids of constraints begin that a model has read in the words

TARGETS = ("allowed_targets", "forbidden_targets", "except_targets")
"""The fields of a condition that name something, which has to stand in the words."""

RUN = "run"  # the step that a run without a plan is

CALL_FAILED = "call_failed"
"""Under which a branch is out whose call ran and failed; it may be named again later, unlike what the gate refused."""


def moved_by(spec: ToolSpec, arguments: Mapping[str, object]) -> frozenset[tuple[Role, str]]:
    """What a call moves, as in `Started`."""
    values = leaves_of(arguments, spec)
    return frozenset((one.role, one.norm) for one in values if one.role in ("destination", "object", "amount"))


def sums_in(spec: ToolSpec, arguments: Mapping[str, object]) -> tuple[Sum, ...]:
    """The sums of money that a call moves."""
    return sums_of((one.name, one.role, one.value) for one in leaves_of(arguments, spec))


def amounts_of(sums: Sequence[Sum]) -> set[Decimal]:
    """The amounts of a call, and all of them together. One that cannot be read may be any: such a call has none."""
    read = [one.amount for one in sums if one.amount is not None]
    return {*read, sum(read, Decimal(0))} if len(read) == len(sums) else set()


@dataclass(frozen=True, slots=True)
class Choosing:
    """The newest tree of a step, and what came of it.

    `point` is how many turns there were when the tree was made or a branch of it taken; `trees` how many in a row were
    made there. `rejected` is out of this tree, `closed` what the gate refused in this step (`key_of_branch`).
    `failures` counts the branches of this step that were taken and failed, `decision` is what was chosen last, `made`
    the number of the turn that was written for it, and `turns` counts such turns: each is a step that nobody was asked
    for (`core/state/roles.py`). `bad` are the numbers of the replies that a branch of words could not use.
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
    bad: tuple[int, ...] = ()

    @property
    def branches(self) -> tuple[HypothesisBranch, ...]:
        """The branches of the newest tree."""
        return self.tree.branches if self.tree is not None else ()

    @property
    def current(self) -> HypothesisBranch | None:
        """The branch that is taken and has not failed."""
        return next((branch for branch in self.branches if branch.status == "committed"), None)

    def branch(self, branch_id: str | None) -> HypothesisBranch | None:
        """The branch of the newest tree with that id."""
        return next((branch for branch in self.branches if branch.branch_id == branch_id), None)


def key_of_branch(branch: HypothesisBranch) -> str:
    """What makes two branches the same: the tool, and the arguments whatever their order."""
    sets = sorted(json_text(one, sort_keys=True) for one in branch.argument_sets)
    return f"{branch.tool_name}\0{json_text(sets)}"


@dataclass(frozen=True, slots=True)
class GateRecord:
    """The gate's part of a state.

    `refused` are the digests that a person said no to, `refused_values` the destinations and objects of those calls.
    `refused_once` are the refused ones without an odd value: that no holds for one repeat, and until the user speaks.
    `shown` are the values that each question showed and a yes to it is for, by its call.

    `nonce` is in the marks around foreign text. `hidden` are the calls whose results hold characters that do not show,
    with their number, which is to be put on record next. `masks` are the passages that a model has named in a result,
    by its content; `judgements` the words of a model on calls. `is_read` says that a model was asked about the words.
    `choosing` is how far the choice between ways to go on has come, by attempt of a step
    (`core/view/step.py: place_of`). `asked_beside`, as a step of a plan has it, counts the questions of the others.
    """

    known: Known
    started: tuple[Started, ...] = ()
    refused: frozenset[str] = frozenset()
    refused_once: frozenset[str] = frozenset()
    refused_values: frozenset[tuple[Role, str]] = frozenset()
    shown: Mapping[str, Shown] = field(default_factory=dict[str, Shown])
    nonce: str = ""
    hidden: tuple[tuple[str, int], ...] = ()
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    judgements: Mapping[str, JudgementMade] = field(default_factory=dict[str, JudgementMade])
    is_read: bool = False
    choosing: Mapping[str, Choosing] = field(default_factory=dict[str, Choosing])
    asked_beside: Mapping[str, int] = field(default_factory=dict[str, int])

    def begin(self, call_id: str, spec: ToolSpec, arguments: Mapping[str, object], digest: str) -> Started:
        """A call that begins, or may: what it is for, and which amounts it moves."""
        amounts, moved = sums_in(spec, arguments), moved_by(spec, arguments)
        to_somebody = any(role == "destination" for role, _ in moved)
        effects = guess(spec, self.known.config.guess).classes(to_somebody=to_somebody)
        return Started(call_id, spec.name, effects, digest, amounts, is_open=True, moved=moved)

    def ended(self, call_id: str, spec: ToolSpec, arguments: Mapping[str, object], result: ToolResult) -> GateRecord:
        """The record once a call has given its result: its values are known, and where they come from."""
        last = 1 + max((one.ended for one in self.started), default=0)
        ended = (replace(one, is_open=False, ended=last) if one.call_id == call_id else one for one in self.started)
        return replace(self, started=tuple(ended), known=having_read(self.known, call_id, spec, arguments, result))

    def with_no(self, spec: ToolSpec, arguments: Mapping[str, object]) -> GateRecord:
        """The record once a person has said no to a call: its destinations and objects are nobody's yes any more."""
        values = {one for one in moved_by(spec, arguments) if one[0] != "amount"}
        left = frozenset(one for one in self.known.endorsed if one[1:] not in values)
        known = replace(self.known, endorsed=left)
        return replace(self, known=known, refused_values=self.refused_values | values)

    @property
    def noes(self) -> Refused:
        """What a person said no to, for another run of the same task."""
        return Refused(self.refused, self.refused_once, self.refused_values)

    def with_noes(self, said: Refused) -> GateRecord:
        """The record with what a person said no to in another run of the same task."""
        return replace(
            self,
            refused=self.refused | said.digests,
            refused_once=self.refused_once | said.once,
            refused_values=self.refused_values | said.values,
        )

    def asking(self, spec: ToolSpec, arguments: Mapping[str, object], grounds: Grounds) -> Grounds:
        """What a question rests on: with the set that a yes is for, and a word on each value that had a no before."""
        no = self.refused_values
        shown = tuple(one for one in set_of(self.known, spec, arguments) if (one[0], one[2]) not in no)
        evidence = tuple(
            replace(e, note=f"you said no to this before; {e.note or _WHY[e.origin]}")
            if (e.role, norm_of(e.value)) in no
            else e
            for e in grounds.evidence
        )
        return replace(grounds, evidence=evidence, shown=shown)


DOING: Mapping[str | None, tuple[str, str]] = {
    "read": ("read anything", "reads through"),
    "write": ("change anything", "changes something through"),
    "communicate": ("send anything to anybody", "sends something to somebody through"),
    "transact": ("pay, book or order anything", "pays, books or orders through"),
    "delete": ("delete anything", "deletes something through"),
    None: ("do this", "calls"),
}
"""An effect in words: what was not asked for, and what a yes does with a tool."""

_WHERE = {"atom": "stands in a field of the result of", "prose": "stands in the running text of the result of"}
_WHY: Mapping[str, str] = {
    "untrusted": "not in your words, and nothing that you named holds it as a field",
    "relayed": "a model has written it into the task",
    "invented": "not in your words, and in no result",
    "declared": "in a record that you named, and money would go there",
    "user": "yours",
    "config": "from the configuration",
    "derived": "counted from a relative date",
}
_NOT_GIVEN: Mapping[str, str] = {
    "destination": "your words name no recipient",
    "amount": "your words give no amount",
    "time": "your words give no time",
}


@dataclass(frozen=True, slots=True)
class OddValue:
    """One value that a person has to look at: in full, what the user said instead, where it is from, why it is odd."""

    path: str
    value: str
    said: str
    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one call. `others` are the leaves that are not odd, `also_for` what a yes holds for too."""

    on_yes: str
    reason: str
    odd: tuple[OddValue, ...]
    others: tuple[tuple[str, str, str], ...]
    also_for: tuple[tuple[str, str], ...] = ()


def question(spec: ToolSpec, reason: str, grounds: Grounds, others: Sequence[Evidence] = ()) -> Question:
    """The question about a call, from what the gate found."""
    effect = guess(spec, "all").effect if not spec.declared else spec.effect
    where = f" (server {in_full(spec.server)})" if spec.server else ""
    parties = [in_full(e.value) for e in (*grounds.evidence, *others) if e.role in ("destination", "amount")]
    to = f": {', '.join(dict.fromkeys(parties))}" if parties else ""
    on_yes = f"On yes, this run {DOING[effect][1]} the tool {in_full(spec.name)}{where}{to}"
    odd = tuple(_odd(e) for e in grounds.evidence)
    paths = {e.path for e in grounds.evidence}
    rest = tuple((e.path, in_full(e.value), e.origin) for e in others if e.path not in paths)
    also_for = tuple((role, in_full(value)) for role, value, _ in grounds.shown)
    return Question(on_yes, reason, odd, rest, also_for)


def _odd(evidence: Evidence) -> OddValue:
    value = in_full(evidence.value)
    if evidence.kind in ("email", "url"):
        host = evidence.value.rpartition("@")[2] if evidence.kind == "email" else host_of(evidence.value)
        value = f"{value}   [domain: {in_full(host)}]"
    if evidence.nearest:
        said = f"you named {in_full(evidence.nearest)}"
    elif evidence.source_id == "user":
        said = ""  # they do name this
    else:
        said = _NOT_GIVEN.get(evidence.role, "your words name nothing like it")
    if not evidence.source_id:
        source = "the model made it up"
    elif evidence.source_id in ("user", "config"):
        source = "from your words" if evidence.source_id == "user" else "from the configuration"
    else:
        source = f"{_WHERE.get(evidence.form, 'stands in the result of')} call {evidence.source_id}"
        if evidence.sentence:
            source += f": «{in_full(evidence.sentence[:LONGEST_SENTENCE])}»"
    return OddValue(evidence.path, value, said, source, evidence.note or _WHY[evidence.origin])

"""What the gate knows of a run beside its calls: the user's intent, where values come from, and how it is set.

Source: spec/guard.md, section 3.1. All of it is frozen and JSON-able.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from surefoot.types.checks import is_number, is_whole
from surefoot.types.errors import ConfigError
from surefoot.types.origins import Origin, Role, ValueKind
from surefoot.types.rules import Rule, StandingRule
from surefoot.types.tools import Effect

EntityKind = Literal["email", "url", "account", "phone", "key", "id", "quoted", "file", "name"]
"""A thing that the user's words name: a hard token, a labelled id, a quoted span, a file name, or capitalised words."""

Cue = Literal["adoption", "delegation", "set", "relative_date"]
"""A turn of phrase that chooses between asking and refusing (section 5.3)."""

ConstraintType = Literal["allow", "forbid", "require_confirmation"]

Capability = Literal["SEARCH", "READ", "WRITE", "CREATE", "DELETE", "COMMUNICATE", "TRANSACT", "BOOK", "REASONING"]

EFFECT_OF: Mapping[Capability, Effect] = {
    "SEARCH": "read",
    "READ": "read",
    "REASONING": "read",
    "WRITE": "write",
    "CREATE": "write",
    "DELETE": "delete",
    "COMMUNICATE": "communicate",
    "TRANSACT": "transact",
    "BOOK": "transact",
}
"""The effect for which a capability of a sketch stands."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing named in the user's words: as written, and in the normal form in which it is compared."""

    text: str
    kind: EntityKind
    norm: str


@dataclass(frozen=True, slots=True)
class Condition:
    """When a constraint applies; what is left out does not matter."""

    effect: Effect | None = None
    tool_name: str | None = None
    tool_name_pattern: str | None = None
    target: str | None = None
    target_pattern: str | None = None
    allowed_targets: tuple[str, ...] = ()
    forbidden_targets: tuple[str, ...] = ()
    except_targets: tuple[str, ...] = ()
    max_count: int | None = None
    max_amount: float | None = None
    currency: str | None = None
    require_user_mention: bool = False


@dataclass(frozen=True, slots=True)
class SecurityConstraint:
    """A limit that the user's words, a configuration or a model set. `priority` 1 (strongest) to 10 orders messages."""

    constraint_id: str
    constraint_type: ConstraintType
    description: str
    condition: Condition = Condition()
    priority: int = 5
    violation_message: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.priority <= 10:  # noqa: PLR2004  # the scale of the spec
            raise ConfigError("priority", self.priority, "give a whole number from 1 (strongest) to 10")


@dataclass(frozen=True, slots=True)
class ConstraintSet:
    """All constraints of a run; `global_rules` are texts that are only shown."""

    constraints: tuple[SecurityConstraint, ...] = ()
    global_rules: tuple[str, ...] = ()
    source: Literal["deterministic", "model", "merged"] = "deterministic"


@dataclass(frozen=True, slots=True)
class Flow:
    """A way for a value that the user's words allow: from a source, of a kind, into a role."""

    source: str
    kind: str = "any"
    role: str | None = None
    cardinality: Literal["one", "set"] = "one"


@dataclass(frozen=True, slots=True)
class AbstractStep:
    """One step of a sketch, made of the user's words before any tool was read."""

    step_id: str
    step_type: str
    description: str = ""
    allowed_capabilities: tuple[Capability, ...] = ()
    forbidden_capabilities: tuple[Capability, ...] = ()
    expected_tools: tuple[str, ...] = ()
    allowed_flows: tuple[Flow, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class AbstractSketch:
    """What the task should take, in steps without tools."""

    steps: tuple[AbstractStep, ...]
    global_constraints: tuple[str, ...] = ()
    expected_outcome: str = ""


@dataclass(frozen=True, slots=True)
class IntentAnchor:
    """What the user's words ask for, read before any other text (section 3.2).

    `dates` are (month, day, year or 0) that the words give, `numbers` their exact values as text, `stems` the stems of
    their words, `spans` their normalised text. Entities that the words forbid are in a constraint and not among
    `entities`.
    """

    words_sha256: str
    effects_asked: frozenset[Effect] = frozenset()
    entities: tuple[Entity, ...] = ()
    cues: frozenset[Cue] = frozenset()
    dates: tuple[tuple[int, int, int], ...] = ()
    numbers: frozenset[str] = frozenset()
    stems: frozenset[str] = frozenset()
    text: str = ""
    constraints: ConstraintSet = ConstraintSet()
    sketch: AbstractSketch | None = None
    made_by: str = "rules"


BranchSource = Literal["hypothesis", "trajectory_memory", "model_call"]
BranchStatus = Literal["untried", "rejected", "committed", "failed"]
"""Not taken yet · refused by the gate · taken · taken, and its call was refused or failed."""


@dataclass(frozen=True, slots=True)
class HypothesisBranch:
    """One way to go on: calls of one tool, one for each set of arguments; or a reserved name, for words.

    `has_side_effects` and `requires_external_communication` are computed from declarations. `rationale` and `flows`
    are text of a model, for persons. `path` is the key of the verified path that a branch out of memory comes from.
    """

    branch_id: str
    step_id: str
    tool_name: str
    argument_sets: tuple[Mapping[str, object], ...] = ()
    rationale: str = ""
    flows: Mapping[str, Flow] = field(default_factory=dict[str, Flow])
    risk_level: Literal["low", "medium", "high"] = "low"
    necessity_score: float = 0.5
    redundancy_level: Literal["minimal", "moderate", "high"] = "minimal"
    has_side_effects: bool = False
    requires_external_communication: bool = False
    source: BranchSource = "hypothesis"
    status: BranchStatus = "untried"
    path: str = ""


@dataclass(frozen=True, slots=True)
class HypothesisTree:
    """The ways to go on in a step, at most six. `decision_point` is the number of the reply that it is made for."""

    tree_id: str
    step_id: str
    decision_point: int
    branches: tuple[HypothesisBranch, ...] = ()
    recommended_branch_id: str | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a branch is not taken: the rule that refused it, and the reason that a model may read."""

    branch_id: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class CommitmentDecision:
    """Which branch of a tree is taken, None where all were rejected; who chose it, and why."""

    tree_id: str
    selected_branch_id: str | None
    by: Literal["model", "order", "person"]
    reason: str = ""
    rejected: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifiedPath:
    """The shape of a call that went well in a completed run: no value of it is kept.

    `key` stands for the kind of step, the effect and the roles; each journal has its own. `roles` has for each
    parameter its role, where its value came from, and by what such a value is found anew. `uses` counts the runs,
    `last_ok` is the day of the last one in ISO form. Source: spec/guard.md, section 3.6.
    """

    key: str
    tool_name: str
    pin: str
    roles: Mapping[str, tuple[Role, Origin, str]]
    uses: int = 1
    last_ok: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a leaf is good or odd: its place in the arguments, what it is, and where its value stands.

    `source_id` is the call whose result holds it, "user", "config", or ""; `form` says whether it stands there as a
    field or in running text, and `sentence` shows that text (at most 200 characters, untrusted).
    """

    path: str
    role: Role
    kind: ValueKind
    value: str
    origin: Origin
    source_id: str = ""
    form: Literal["", "atom", "prose"] = ""
    sentence: str = ""
    nearest: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a decision of the gate rests on.

    `also` are the rules that asked too, `digest` what an approval binds to, `would_be` the decision that mode
    "observe" only notes, `reason_person` what the person reads of a refusal. `shown` are the further values, each with
    its role and normal form, for which a yes to a question holds too, because the words speak of a set (section 4.9).
    """

    also: tuple[str, ...] = ()
    digest: str = ""
    would_be: str = ""
    reason_person: str = ""
    evidence: tuple[Evidence, ...] = ()
    shown: tuple[tuple[Role, str, str], ...] = ()


NO_GROUNDS = Grounds()


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """How the gate judges (section 3.8).

    `mode`: "off" keeps only that hidden tools, faulty arguments and calls in reasoning steps do not run; "observe"
    judges and only notes; "enforce" decides. `strict`: nobody is there to ask, so every question is a refusal.
    `two_faults`, `content_tokens`, `fetch`: what follows from an effect not asked for with a bad value, from an odd
    token in a text, from a fetch of an address that is not the user's. `guess`: whose tools without a declared effect
    get one from their names. `pins`: whether a foreign tool counts as it was when it was first seen ("first-use"), or
    is hidden until a person has pinned it ("strict"). `approvals`: whether a question stops all new calls ("pause") or
    only those that have to wait for it ("queue"), or is a refusal ("deny"). With `max_asks` questions open nothing new
    begins until a person has answered one; 0 asks nobody, as "deny". After `approval_timeout_s` the answer to a
    question is no. `lexicon` adds words to effects, `{"communicate": ("ping",)}`; `constraints` hold for every run.
    `rules` only tighten, `standing` always allow one thing, `cedar` is the text of Cedar policies ("": none; needs the
    extra `cedar`), `user` whose runs these are to them.

    What a model adds, which only tightens: `anchor` "model" has it read the user's words, `sanitise` "model" name
    passages of results that are not to be shown, `judge` look at each call that does more than read. `judge` is "" for
    nobody, "self" for the run's own model, or the name of another, which is then asked for all three. A stage that
    gives no good reply within `stage_timeout_s` has failed, and asks a person where it matters.

    `speculate` has a model name ways to go on before each reply of a step with tools; the gate judges each, and one is
    recommended. With `direct` its calls are made without asking the model, and judged again. After `max_backtracks`
    failures of taken branches, a step goes on without; after `max_trees` of which nothing survives, the model is told
    why, or the step of a plan fails. `memory` keeps the shapes of calls that went well beside the journal.
    """

    mode: Literal["off", "observe", "enforce"] = "enforce"
    strict: bool = False
    two_faults: Literal["deny", "ask"] = "deny"
    content_tokens: Literal["ask", "allow"] = "ask"
    fetch: Literal["ask", "allow"] = "ask"
    guess: Literal["own", "all", "none"] = "own"
    pins: Literal["first-use", "strict"] = "first-use"
    approvals: Literal["pause", "queue", "deny"] = "pause"
    approval_timeout_s: float = 86_400.0
    max_asks: int = 10
    reasoning_retries: int = 2
    lexicon: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    constraints: tuple[SecurityConstraint, ...] = ()
    rules: tuple[Rule, ...] = ()
    standing: tuple[StandingRule, ...] = ()
    cedar: str = ""
    user: str = ""
    anchor: Literal["rules", "model"] = "rules"
    sanitise: Literal["rules", "model"] = "rules"
    judge: str = ""
    stage_timeout_s: float = 120.0
    speculate: bool = False
    direct: bool = False
    memory: bool = False
    max_backtracks: int = 3
    max_trees: int = 2

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(name, getattr(self, name), f"choose one of {', '.join(choices)}")
        for name, least in (("max_asks", 0), ("reasoning_retries", 0), ("max_backtracks", 0), ("max_trees", 1)):
            if not is_whole(getattr(self, name), least):
                raise ConfigError(name, getattr(self, name), f"give a whole number of at least {least}")
        for name in ("approval_timeout_s", "stage_timeout_s"):
            if not (is_number(getattr(self, name)) and getattr(self, name) > 0):
                raise ConfigError(name, getattr(self, name), "give seconds above 0")
        for name, kind in _KINDS.items():
            if not isinstance(getattr(self, name), kind):
                raise ConfigError(name, getattr(self, name), f"give a {kind.__name__}")
        for name in ("direct", "memory"):
            if getattr(self, name) and not self.speculate:
                raise ConfigError(name, getattr(self, name), "it needs speculate=True")
        for name, part in (("constraints", SecurityConstraint), ("rules", Rule), ("standing", StandingRule)):
            if not all(isinstance(one, part) for one in getattr(self, name)):
                raise ConfigError(name, getattr(self, name), f"give a tuple of {part.__name__}")
        for effect, words in self.lexicon.items():
            if effect not in get_args(Effect):
                raise ConfigError("lexicon", effect, f"name effects: {', '.join(get_args(Effect))}")
            if not isinstance(words, tuple | list) or not all(map(_is_word, words)):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
                raise ConfigError("lexicon", words, "give the words of an effect as a tuple of texts")


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("strict", "speculate", "direct", "memory"), bool),
    "lexicon": Mapping,
    "constraints": tuple,
    "rules": tuple,
    "standing": tuple,
    "cedar": str,
    "user": str,
    "judge": str,
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "mode": ("off", "observe", "enforce"),
    "two_faults": ("deny", "ask"),
    "content_tokens": ("ask", "allow"),
    "fetch": ("ask", "allow"),
    "guess": ("own", "all", "none"),
    "pins": ("first-use", "strict"),
    "approvals": ("pause", "queue", "deny"),
    "anchor": ("rules", "model"),
    "sanitise": ("rules", "model"),
}

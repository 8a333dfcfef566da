"""What the gate knows of a run beside its calls: the user's intent, where values come from, and how it is set.

Source: spec/guard.md, section 3.1. All of it is frozen and JSON-able.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ConfigError
from surefoot.types.rules import Declared, Origin, Role, Rule, StandingRule, ValueKind, by_name
from surefoot.types.settings import Settings, all_of, choice, flag, mapping_of, seconds, setting, text, tuple_of, whole
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
    """All constraints of a run."""

    constraints: tuple[SecurityConstraint, ...] = ()
    source: Literal["deterministic", "model", "merged"] = "deterministic"


@dataclass(frozen=True, slots=True)
class AbstractStep:
    """One step of a sketch, made of the user's words before any tool was read."""

    step_id: str
    step_type: str
    description: str = ""
    allowed_capabilities: tuple[Capability, ...] = ()
    forbidden_capabilities: tuple[Capability, ...] = ()


@dataclass(frozen=True, slots=True)
class AbstractSketch:
    """What the task should take, in steps without tools."""

    steps: tuple[AbstractStep, ...]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of the user's words in normal form, its verb, and what that may do; a verb that does nothing keeps."""

    text: str
    verb: str = ""
    effects: frozenset[Effect] = frozenset()


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
    clauses: tuple[Clause, ...] = ()


BranchSource = Literal["hypothesis", "trajectory_memory", "model_call"]
BranchStatus = Literal["untried", "rejected", "committed", "failed"]
"""Not taken yet · refused by the gate · taken · taken, and its call was refused or failed."""


@dataclass(frozen=True, slots=True)
class HypothesisBranch:
    """One way to go on: calls of one tool, one for each set of arguments; or a reserved name, for words.

    `has_side_effects` and `requires_external_communication` are computed from declarations. `rationale` is text of a
    model, for persons. `path` is the key of the verified path that a branch out of memory comes from.
    """

    branch_id: str
    step_id: str
    tool_name: str
    argument_sets: tuple[Mapping[str, object], ...] = ()
    rationale: str = ""
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


_word_list = tuple_of(lambda word: isinstance(word, str) and bool(word.strip()), "give a list of words")


@dataclass(frozen=True, slots=True)
class GuardConfig(Settings):
    """How the gate judges. What a model adds (`anchor`, `sanitise`, `judge`) only tightens. Raises `ConfigError`.

    A stage that gives no good reply within `stage_timeout_s` has failed, and asks a person where it matters.
    Source: spec/guard.md, section 3.8.
    """

    mode: Literal["off", "observe", "enforce"] = setting(
        "enforce",
        choice("off", "observe", "enforce"),
        "`enforce` decides; `observe` notes what would be decided and lets it run; `off`: as without a guard. "
        "`surefoot run` enforces where a tool may change something, unless it is told otherwise",
        found=("enforce",),
        option="--guard",
    )
    strict: bool = setting(
        False, flag, "nobody is there to ask: every question is a refusal, and destinations are checked more strictly"
    )
    two_faults: Literal["deny", "ask"] = setting(
        "deny", choice("deny", "ask"), "an effect not asked for with a bad value: `deny` or `ask`", found="default"
    )
    content_tokens: Literal["ask", "allow"] = setting(
        "ask", choice("ask", "allow"), "an odd address or the like inside a text: `ask` or `allow`", found="default"
    )
    fetch: Literal["ask", "allow"] = setting(
        "ask", choice("ask", "allow"), "a fetch of an address that is not the user's: `ask` or `allow`", found="default"
    )
    guess: Literal["own", "all", "none"] = setting(
        "own",
        choice("own", "all", "none"),
        "whose tools without a declared effect get one from their names; else `all`, `none`",
        found=("none",),
    )
    pins: Literal["first-use", "strict"] = setting(
        "first-use",
        choice("first-use", "strict"),
        "a foreign tool counts as it was when first seen; `strict`: it is hidden until a person has pinned it",
    )
    approvals: Literal["pause", "queue", "deny"] = setting(
        "pause",
        choice("pause", "queue", "deny"),
        "a question stops all new calls; `queue`: only those that have to wait for it; `deny`: it is a refusal",
        found=("deny",),
    )
    approval_timeout_s: float = setting(86_400.0, seconds, "seconds after which the answer is no", found="at most")
    max_asks: int = setting(
        10,
        whole(0),
        "questions of one rule that may be open at once; then nothing begins until one is answered. 0: as with `deny`",
        found="at most",
    )
    reasoning_retries: int = setting(
        2, whole(0), "further tries of a thinking step that called a tool ([steps](steps.md))"
    )
    lexicon: Mapping[str, tuple[str, ...]] = setting(
        dict[str, tuple[str, ...]],
        mapping_of(
            lambda effect, words: _word_list(f"lexicon.{choice(*get_args(Effect))('lexicon', effect)}", words),
            "give a table of effects and their words",
        ),
        'your own words for effects: `{communicate = ["ping"]}`',
        found="default",
    )
    constraints: tuple[SecurityConstraint, ...] = setting(
        (), all_of(SecurityConstraint), "in Python: what holds for every run", in_files=False
    )
    rules: tuple[Rule, ...] = setting(
        (),
        all_of(Rule),
        "your own rules, which only tighten; in a file the one that `rules_file` names ([rules](rules.md))",
        in_files=False,
    )
    standing: tuple[StandingRule, ...] = setting(
        (), all_of(StandingRule), "what you always allow; in a file the one that `rules_file` names", in_files=False
    )
    cedar: str = setting(
        "", text, "Cedar policies; in a file the one that `cedar_file` names; needs the extra `cedar`", in_files=False
    )
    declared: Mapping[str, Declared] = setting(
        dict[str, Declared],
        by_name,
        "what tools are, by name; in a file the one that `rules_file` names",
        in_files=False,
    )
    user: str = setting("", text, "the user that Cedar sees", found="default")
    anchor: Literal["rules", "model"] = setting(
        "rules", choice("rules", "model"), "`model`: a model reads the user's words, too", found="default"
    )
    sanitise: Literal["rules", "model"] = setting(
        "rules", choice("rules", "model"), "`model`: a model names passages of results that are not to be shown"
    )
    judge: str = setting(
        "",
        text,
        "who looks at each call that does more than read: nobody, the run's own model (`self`), or the model of this "
        "name, which is then asked for `anchor` and `sanitise`, too",
        found=("self",),
    )
    stage_timeout_s: float = setting(120.0, seconds, "seconds for each request of these stages")
    speculate: bool = setting(False, flag, "branches are proposed and judged before each reply", found="default")
    direct: bool = setting(
        False, flag, "with `speculate`: recommended calls are made without asking the model", found="default"
    )
    memory: bool = setting(False, flag, "with `speculate`: shapes of successful calls are kept", found="default")
    max_backtracks: int = setting(3, whole(0), "with `speculate`: failed branches after which a step goes on without")
    max_trees: int = setting(2, whole(1), "with `speculate`: trees of which nothing survives")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        for name in ("direct", "memory"):
            if getattr(self, name) and not self.speculate:
                raise ConfigError(name, getattr(self, name), "it needs speculate=True")

"""May this call run? The policies of a run and those of its gate are asked; the strictest verdict wins.

Each policy is a pure function of a state and a call, named for what it forbids. What the gate says beside them rests on
values alone (`core/gate/verdict.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from surefoot.core.gate.effects import guess
from surefoot.core.gate.record import GateRecord, Started
from surefoot.core.gate.roles import leaves, name_of, role_of_name
from surefoot.core.gate.rules import Asked
from surefoot.core.gate.sources import Known
from surefoot.core.gate.verdict import asked_about, digest_of, verdict_on
from surefoot.core.select.profile import refusal
from surefoot.core.state.repeats import call_fingerprint, verdict
from surefoot.core.state.roles import PREFETCH, spent_limit
from surefoot.core.state.state import Call, State
from surefoot.core.state.trail import REMEDY
from surefoot.core.text.json import json_text
from surefoot.core.text.look import normal_text
from surefoot.core.text.words import fits
from surefoot.core.view.shape import REPEATS, shape_faults
from surefoot.core.view.stages import Verdict, is_judged, tightened
from surefoot.core.view.step import tools_now
from surefoot.types.events import CallJudged
from surefoot.types.guard import NO_GROUNDS
from surefoot.types.moves import Move, Record
from surefoot.types.outcomes import ALLOWED, Allow, Ask, Decision, Deny
from surefoot.types.prehydration import TIMED_OUT

_CLOCK_S = 0.001
"""What a timer may be early."""

Policy = Callable[[State, Call], Decision]

REASONING_STEP = "reasoning_step"
"""Under which calls in a step without tools are refused."""


def reasoning_step(state: State, call: Call) -> Decision:
    """In a step of a plan, or a branch, that is for words alone no call runs, whatever allows it (spec/guard.md, 2)."""
    turn, plan = state.turn, state.plan
    if turn is None or (turn.want != "reasoning" and (plan is None or not plan.is_reasoning(turn.step_id))):
        return ALLOWED
    return Deny(
        f"This step is for thinking only, so the call to `{call.name or 'a tool'}` was not run. Write the step's "
        "conclusion in your own words from what is already known. If something is missing, name it; a later step can "
        "fetch it."
    )


def profile(state: State, call: Call) -> Decision:
    """A tool that is not offered does not run, even if the model knows its name (spec/primitives.md, section 1.6)."""
    offered = tools_now(state)
    if offered.get(call.name) or (state.turn is not None and state.turn.role == PREFETCH):
        return ALLOWED  # what is fetched the operator has named for that, and it only reads
    return Deny(refusal(call.name, offered.names))


def no_finish_before_results(state: State, call: Call) -> Decision:
    """A finish tool beside other calls is not accepted: results come first. Source: spec/react.md, section 7.4."""
    if call.spec is None or not call.spec.finish:
        return ALLOWED
    if not answer_of_finish(call.arguments).strip():
        return Deny("not accepted: the answer is empty")
    schema = None if state.config.output_schema is None else state.output_schema
    if schema is not None and (told := shape_faults(answer_of_finish(call.arguments), schema)):
        return Deny(f"not accepted: the answer does not have the shape that was asked for: {told}")
    others = [other for other in state.calls if other.id != call.id]
    if state.config.finish_with_reads and all(o.spec and o.spec.effect == "read" and not o.spec.finish for o in others):
        return ALLOWED
    return Deny("not accepted: results first") if others else ALLOWED


def answer_of_finish(arguments: Mapping[str, object]) -> str:
    """The answer that a finish tool is called with: its only text, or all of its arguments as JSON."""
    only = next(iter(arguments.values())) if len(arguments) == 1 else None
    return only if isinstance(only, str) else json_text(arguments) if arguments else ""


def stuck(state: State, call: Call) -> Decision:
    """A call that has come to its limit, or goes on in a circle, does not run."""
    sign = verdict(state, call)
    return Deny(f"refused: {sign.reason}. {REMEDY}") if sign.decision in ("block", "stop") else ALLOWED


def no_call_after_the_time(state: State, _call: Call) -> Decision:
    """A call that the time of the run, or of its prefetch, no longer covers is not begun: it need not be broken off."""
    if state.config.budget.max_seconds is not None and spent_limit(state, reserve=True) == "time":
        return Deny("not run: the time limit of this run is reached")
    config, turn = state.config.pre_hydration, state.turn
    if config is None or (found := state.found) is None or turn is None or turn.role != PREFETCH:
        return ALLOWED
    return Deny(TIMED_OUT) if state.elapsed_s + _CLOCK_S >= found.elapsed_s + config.timeout else ALLOWED


def failed_before(state: State, call: Call) -> Decision:
    """A call that has failed, or has had its effect, in another step or attempt is not made again (planning, 8)."""
    if not state.barred or call_fingerprint(call.name, call.arguments, call.spec) not in state.barred:
        return ALLOWED
    told = "refused: this very call was made before in this run, in vain or with its effect"
    return Deny(f"{told}. Use other arguments or another tool, or say that it is done")


_OURS = "file_write"
_LONGEST_PATH = 4096
_HISTORY = (".git", ".hg", ".svn", ".jj")
"""Folders that `file_write` never writes, so that nobody need be asked."""

GUARDED = (
    # run by a shell when it starts, or enters a folder
    *(".bash*", ".zsh*", ".zprofile", ".zlogin", ".zlogout", ".profile", ".login", ".logout", ".*shrc", ".inputrc"),
    *("config.fish", ".envrc", ".xprofile", ".xinitrc"),
    # run by version control and by the servers that build what is pushed
    *(*_HISTORY, ".gitconfig", ".husky", ".githooks", ".pre-commit-config.y*ml"),
    *(".github", ".gitea", ".forgejo", ".circleci", ".buildkite", ".woodpecker*", ".gitlab-ci.y*ml", ".travis.y*ml"),
    *(".drone.y*ml", "jenkinsfile", "azure-pipelines.y*ml", "bitbucket-pipelines.y*ml"),
    # run by tests, builds and every start of an interpreter
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "makefile", "gnumakefile"),
    # obeyed by agents, this one among them
    *("agents.md", "agents.override.md", "claude.md", "surefoot.toml"),
)
"""Patterns for one name of a path, in lower case; a folder stands for all below it."""


def guarded_path(_state: State, call: Call) -> Decision:
    """A file that somebody else runs or obeys later is written with a person's approval alone, in every mode.

    It looks at `file_write` and at tools of servers, which may write files as well. A tool of your own is your own word
    on what it may write.
    """
    spec = call.spec
    if spec is None or spec.effect == "read" or not (spec.is_foreign or spec.name == _OURS):
        return ALLOWED
    if not spec.declared and guess(spec, "all").effect == "read":
        return ALLOWED
    for path, value in leaves(call.arguments, spec):
        is_path = isinstance(value, str) and len(value) <= _LONGEST_PATH and role_of_name(name_of(path)) != "content"
        text = str(value)
        if not is_path or text.lower().startswith(("http://", "https://")) or not is_guarded(text):
            continue
        if spec.name == _OURS and is_guarded(text, _HISTORY):
            return Deny("refused: folders of version control are not written by tools. Use another path.")
        return Ask(f"it writes {text[:200]!r}, which others run or obey later")
    return ALLOWED


def is_guarded(path: str, patterns: Sequence[str] = GUARDED) -> bool:
    """Whether a part of a path has such a name, however it is spelt."""
    parts = (normal_text(part).rstrip(". ") for part in path.replace("\\", "/").split("/"))
    return any(fits(pattern, part) for part in parts for pattern in patterns)


def approval(state: State, call: Call) -> Decision:
    """A tool that was made so runs with a person's approval alone: each call, or the first of a run or of a step."""
    spec = call.spec
    if spec is None or not spec.approval:
        return ALLOWED
    if spec.approval == "always":
        return Ask(f"each call of {spec.name} needs a person's approval")
    made = (one for turn in state.own_turns for one in turn.calls if one.name == spec.name and one.decision == ALLOWED)
    is_approved = any(one.rule == "person" for one in made)
    return ALLOWED if is_approved else Ask(f"the first call of {spec.name} needs a person's approval")


def stricter_effect(state: State, call: Call) -> Decision:
    """A tool that does more by now than when the run began was meant, or approved, as what it was then."""
    was = state.redeclared.get(call.name)
    if was is None or call.spec is None:
        return ALLOWED
    declared = f"a {was}" if was == "read" else repr(was)
    return Ask(f"{call.name} was declared as {declared} when the run began, is now {call.spec.effect!r}")


def foreign_journal(state: State, call: Call) -> Decision:
    """Of a run that nobody here has begun, a person is asked before the first effect: its words may be anybody's."""
    if not state.is_foreign or call.spec is None or call.spec.effect == "read":
        return ALLOWED
    return Ask("this run was not begun here, so what it was asked to do may not be yours")


def unanchored_step(state: State, _call: Call) -> Decision:
    """A step that goes beyond the user's words, proposed after untrusted text was read, asks first (planning, 13)."""
    step = state.running_step
    if step is None or not step.unanchored:
        return ALLOWED
    return Ask("this step was planned after untrusted text had been read, and goes beyond what the user asked for")


POLICIES: tuple[Policy, ...] = (
    *(reasoning_step, profile, no_finish_before_results, no_call_after_the_time, failed_before),
    *(guarded_path, approval, stricter_effect, foreign_journal, unanchored_step),
)

_IN_ANY_RUN: tuple[Policy, ...] = (reasoning_step, profile, no_finish_before_results, guarded_path, approval)
"""What is left of these where no step, limit of time, earlier call or journal of others is there to be asked about."""

_WITHOUT_GUARD = {one.__name__ for one in (guarded_path, approval, stricter_effect, foreign_journal)}
"""Policies whose question is asked in every mode of the gate, too: watching alone lifts nothing that holds without."""

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def judge(state: State, call: Call, policies: tuple[Policy, ...] = (), *, is_dry: bool = False) -> Verdict:
    """The decision, the name of the policy that made it ("" when all allow), and what it rests on.

    Without `policies` all that can say something. In a dry run nothing is decided, and the word of a model is left to
    when the call is made.
    """
    if not policies:
        is_special = state.plan or state.found or state.barred or state.redeclared or state.is_foreign
        policies = POLICIES if is_special or state.config.budget.max_seconds is not None else _IN_ANY_RUN
    strictest: Decision = ALLOWED
    rule = ""
    for policy in policies:
        if (decision := policy(state, call)) is ALLOWED:
            continue
        if isinstance(decision, Ask) and isinstance(strictest, Ask):
            strictest = Ask(f"{strictest.reason}; {decision.reason}")
        elif _STRICTNESS[decision.kind] > _STRICTNESS[strictest.kind]:
            strictest, rule = decision, policy.__name__
    gate = state.gate
    if isinstance(strictest, Deny) or call.spec is None:
        return strictest, rule, NO_GROUNDS
    if gate is None and state.config.guard is not None and state.config.guard.mode == "enforce":
        return Deny("refused: what the user asked for was not read before"), "unanchored", NO_GROUNDS  # as in a fork
    if gate is None:
        return strictest, rule, NO_GROUNDS
    gate = replace(gate, known=_knowledge(state, gate), started=_started_beside(state, gate, call))
    said = verdict_on(gate.known, call.spec, call.arguments, gate.started)
    if isinstance(strictest, Ask) and isinstance(said[0], Allow):
        said = strictest, rule, replace(said[2], evidence=())  # none of its values is in question
    elif isinstance(strictest, Ask) and isinstance(said[0], Ask):
        also = replace(said[2], also=(rule, *said[2].also))
        said = Ask(f"{strictest.reason}; {said[0].reason}"), said[1], also
    is_final = is_dry or isinstance(said[0], Deny)
    if gate.known.config.judge and not is_final and _is_for_the_judge(state, gate, call):
        said = tightened(gate, gate.judgements.get(call.id), said)
    decision, by, grounds = _in_mode(gate, said)
    if isinstance(decision, Allow) and rule in _WITHOUT_GUARD:
        decision, by = strictest, rule
    if isinstance(decision, Ask):
        grounds = gate.asking(call.spec, call.arguments, grounds)
    return decision, by, grounds


def is_unheard(state: State, call: Call) -> bool:
    """Whether a model has still to be asked about a call; not about one that is refused anyway."""
    gate = state.gate
    if gate is None or not gate.known.config.judge or call.spec is None or call.id in gate.judgements:
        return False
    if any(isinstance(policy(state, call), Deny) for policy in POLICIES):
        return False
    said = verdict_on(_knowledge(state, gate), call.spec, call.arguments, _started_beside(state, gate, call))
    if any(isinstance(decision, Deny) for decision in (said[0], _in_mode(gate, said)[0])):
        return False
    return _is_for_the_judge(state, gate, call)


def _is_for_the_judge(state: State, gate: GateRecord, call: Call) -> bool:
    """Whether a model has a say in a call. What the user's words refer to is fetched without."""
    is_fetched = state.turn is not None and state.turn.role == PREFETCH
    return call.spec is not None and not is_fetched and is_judged(gate, call.spec, call.arguments)


def policy_call(state: State, call: Call) -> Asked | None:
    """A call as the policies of the gate see it; None where there is no gate, or no such tool."""
    gate = state.gate
    if gate is None or call.spec is None:
        return None
    return asked_about(_knowledge(state, gate), call.spec, call.arguments, _started_beside(state, gate, call))


def _knowledge(state: State, gate: GateRecord) -> Known:
    """What is known, with the kind of the step that runs, if any, and the habit of the model that speaks."""
    turn = state.turn
    if turn is None:
        return gate.known
    steps = state.plan.steps if state.plan is not None else ()
    kind = next((step.kind for step in steps if step.step_id == turn.step_id), gate.known.step_kind)
    speaker = state.speakers.get(turn.role)
    return replace(gate.known, step_kind=kind, repeats=speaker is not None and speaker.traits.get(REPEATS) == "yes")


def _started_beside(state: State, gate: GateRecord, call: Call) -> tuple[Started, ...]:
    """What was started beside a call, and what of this reply may run and comes first: limits count them all."""
    known = {one.call_id for one in gate.started}
    first = (c for c in state.calls if c.is_waiting and isinstance(c.decision, Allow) and c.id not in known)
    others = (one for one in gate.started if one.call_id != call.id)  # an attempt of its own counts once
    return (*others, *(gate.begin(c.id, c.spec, c.arguments, c.digest) for c in first if c.spec))


def _in_mode(gate: GateRecord, said: Verdict) -> Verdict:
    """The verdict of the gate in its mode; what a person has refused is refused again without a question."""
    decision, rule, grounds = said
    config = gate.known.config
    if config.mode == "observe":
        return ALLOWED, "", replace(grounds, would_be="" if decision.kind == "allow" else f"{decision.kind}: {rule}")
    if isinstance(decision, Ask):
        if grounds.digest in gate.refused:
            return Deny("refused: a person has already said no to exactly this"), rule, grounds
        if config.approvals == "deny" or config.max_asks == 0:
            return Deny(f"refused, and nobody is asked: {decision.reason}"), rule, grounds
    return decision, rule, grounds


def has_asked_enough(state: State) -> bool:
    """Whether one rule has as many questions open as it may: nothing begins until one is answered."""
    most = state.gate.known.config.max_asks if state.gate is not None else 0
    return 0 < most <= max(questions(state).values(), default=0)


def has_to_wait(state: State, call: Call, move: Move) -> bool:
    """Whether a verdict on a call is a question that is not put yet: as many of its rule are open as may be.

    A quarter is kept for calls that touch the user's words, so that no flood of others keeps them from being asked.
    """
    match move:
        case Record((CallJudged(decision=Ask(), rule=rule),)) if asked := policy_call(state, call):
            most = asked.known.config.max_asks
            is_open = questions(state)[rule] + (state.gate.asked_beside.get(rule, 0) if state.gate is not None else 0)
            return 0 < most <= is_open + (0 if asked.aim.is_touching else most // 4)
        case _:
            return False


def is_paused(state: State) -> bool:
    """Whether a question of the gate holds up everything else: what has started ends, nothing new begins."""
    return state.gate is not None and state.gate.known.config.approvals == "pause" and bool(questions(state))


def questions(state: State) -> Counter[str]:
    """How many calls wait for a person, by the rule that asks; those of all steps among them."""
    steps = state.planning.children.values() if state.planning is not None else ()
    calls = (call for owner in (state, *steps) for call in owner.calls)
    return Counter(call.rule for call in calls if call.is_open and isinstance(call.decision, Ask))


def refused_since(state: State, call: Call) -> Decision:
    """What a person allowed is judged once more before it starts: a limit may have been reached since."""
    if state.gate is None or call.spec is None or call.rule != "person" or state.gate.known.config.mode != "enforce":
        return ALLOWED
    others = [one for one in state.gate.started if one.call_id != call.id]  # an attempt of its own counts once
    decision, _, _ = verdict_on(_knowledge(state, state.gate), call.spec, call.arguments, others)
    return decision if isinstance(decision, Deny) else ALLOWED


def digest_mismatch(state: State, call: Call) -> Decision:
    """What was judged is what runs: arguments that have changed since are refused (spec/guard.md, section 4.2)."""
    if state.gate is None or call.spec is None or not call.digest:
        return ALLOWED
    if digest_of(call.spec, call.arguments) == call.digest:
        return ALLOWED
    return Deny("refused: the arguments have changed since the call was judged")

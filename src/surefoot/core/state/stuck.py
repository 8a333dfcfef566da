"""Does a step get nowhere? Pure functions over what is known of the steps of one run.

An attempt that fails is counted; the step stops when its last two errors are the same, or when it has failed often
enough; a stop stays until the step begins anew. That errors or calls come round in circles is asked of
`core/state/trail.py`.
A step that nobody began begins with its first record: a forgotten `begin` must not switch the protection off. Source:
spec/primitives.md, 2.1 and 2.2.
"""

from __future__ import annotations

from surefoot.core.state import trail
from surefoot.core.state.lookup import Lookup
from surefoot.core.text.look import likeness, normal
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.progress import CONTINUE, StepDecision, StepIterationConfig

_LEAST_PERIOD_OF_FAILURES = 2  # one error after itself is asked about by likeness, not as a circle


@dataclass(frozen=True, slots=True)
class Failure:
    """The last error of a step, as it is compared (at most 2,000 characters); the call it came of, b"" when unknown."""

    text: str
    call: bytes = b""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What is known of one step: its failed attempts, its last error, its circles, and the stop once there is one."""

    count: int = 0
    last: Failure | None = None
    failures: trail.Trail = trail.NO_TRAIL
    turns: trail.Trail = trail.NO_TRAIL
    stop: StepDecision | None = None


Steps = Lookup[str, Step]
"""The steps of a run by their ids; a step takes at most some 3 kB."""

NO_STEPS: Steps = Lookup()
_NEW = Step()


def begin(steps: Steps, step_id: str) -> Steps:
    """The step begins, or begins anew: nothing counted, no error, no stop."""
    return steps.plus({step_id: _NEW})


def reset(steps: Steps, step_id: str) -> Steps:
    """Nothing is known of the step any more, as when it succeeds."""
    return Lookup({each: step for each, step in steps.items() if each != step_id})


def count(steps: Steps, step_id: str) -> int:
    """The failed attempts; 0 for a step that is not known."""
    return steps.get(step_id, _NEW).count


def record(steps: Steps, config: StepIterationConfig, step_id: str, error: str, *, call: bytes = b"") -> Steps:
    """Count a failed attempt and keep its error, and decide nothing. `call`: `call_digest` of what failed, if known."""
    failure = Failure(normal(error), call)
    return steps.plus({step_id: _failed(steps.get(step_id, _NEW), config, failure)})


def record_and_check(
    steps: Steps,
    config: StepIterationConfig,
    step_id: str,
    error: str,
    *,
    call: bytes = b"",
    infrastructure: bool = False,
    number: int = 0,
) -> tuple[Steps, StepDecision]:
    """Count a failed attempt, and decide.

    In this order: a stop stays; a failure of infrastructure does not count; the same error as the one before stops; so
    does the limit; and a circle of errors is told, denied and stopped as `core/state/trail.py` has it.
    The same error of another call is a search, not a loop. `number` is the place of the failure in the journal.
    """
    step = steps.get(step_id, _NEW)
    if step.stop is not None:
        return steps.plus({step_id: replace(step, count=step.count + 1)}), step.stop
    if infrastructure:
        return steps, CONTINUE
    failure = Failure(normal(error), call, number)
    tried = _failed(step, config, failure)
    decision = CONTINUE
    if config.enabled:
        stop = _same_again(step, failure, config, step_id) or _limit_reached(tried, config, step_id)
        decision = stop or _circle(tried, config, step_id)
    return _decided(steps, step_id, tried, decision)


def check(steps: Steps, config: StepIterationConfig, step_id: str) -> tuple[Steps, StepDecision]:
    """The stop of the step, if there is one or the limit is reached; else go on."""
    step = steps.get(step_id, _NEW)
    if step.stop is not None:
        return steps, step.stop
    limit = _limit_reached(step, config, step_id) if config.enabled else None
    return (steps, CONTINUE) if limit is None else _decided(steps, step_id, step, limit)


def ahead(steps: Steps, config: StepIterationConfig, step_id: str) -> StepDecision:
    """What there is against one more attempt: the stop of the step, its limit, or that its errors come in a circle."""
    _, decision = check(steps, config, step_id)
    if decision.decision == "stop" or not config.enabled:
        return decision
    sign = _circle(steps.get(step_id, _NEW), config, step_id)
    return replace(sign, decision="block") if sign.strictness else CONTINUE


def denied(steps: Steps, config: StepIterationConfig, step_id: str, *, number: int = 0) -> tuple[Steps, StepDecision]:
    """An attempt was refused because of `ahead`: a circle of errors it continues by one; a limit is told of it."""
    step = steps.get(step_id, _NEW)
    failures = trail.repeated(step.failures, config, number, least_period=_LEAST_PERIOD_OF_FAILURES)
    if step.stop is not None or failures is step.failures:
        return check(steps, config, step_id)
    step = replace(step, failures=failures)
    return _decided(steps, step_id, step, _circle(step, config, step_id))


def observe(
    steps: Steps, config: StepIterationConfig, step_id: str, call: trail.SeenCall
) -> tuple[Steps, StepDecision]:
    """A call of the step has ended, well or badly: is it going in circles?"""
    step = steps.get(step_id, _NEW)
    watched = replace(step, turns=trail.turn(step.turns, config, (call,)))
    if step.stop is not None:
        return steps.plus({step_id: watched}), step.stop
    return _decided(steps, step_id, watched, trail.standing(watched.turns, config, who=_step_name(step_id)))


def _failed(step: Step, config: StepIterationConfig, failure: Failure) -> Step:
    entry = trail.Entry(trail.digest(failure.call, failure.text), number=failure.number)
    return replace(step, count=step.count + 1, last=failure, failures=trail.add(step.failures, config, entry))


def _same_again(step: Step, failure: Failure, config: StepIterationConfig, step_id: str) -> StepDecision | None:
    last = step.last
    if last is None or last.call != failure.call:
        return None
    if (alike := likeness(last.text, failure.text, config.similarity_threshold)) is None:
        return None
    percent, least = f"{alike * 100:.0f}%", f"{config.similarity_threshold * 100:.0f}%"
    reason = f"{_step_name(step_id)} appears stuck: consecutive errors are {percent} similar (threshold: {least})"
    evidence = trail.known_records((last.number, failure.number))
    return StepDecision("stop", "stuck", "similar", reason, evidence, similarity=alike)


def _circle(step: Step, config: StepIterationConfig, step_id: str) -> StepDecision:
    return trail.standing(step.failures, config, who=_step_name(step_id), least_period=_LEAST_PERIOD_OF_FAILURES)


def _limit_reached(step: Step, config: StepIterationConfig, step_id: str) -> StepDecision | None:
    most = config.max_reattempts_per_step
    if step.count < most:
        return None
    evidence = trail.known_records(entry.number for entry in step.failures.entries)
    return StepDecision("stop", "max", None, f"{_step_name(step_id)} reached max reattempts ({most})", evidence)


def _decided(steps: Steps, step_id: str, step: Step, decision: StepDecision) -> tuple[Steps, StepDecision]:
    """The stop is kept for whoever asks again; only who hears it now hears it first."""
    if decision.decision != "stop":
        return steps.plus({step_id: step}), decision
    return steps.plus({step_id: replace(step, stop=decision)}), replace(decision, first=True)


def _step_name(step_id: str) -> str:
    return f"Step '{trail.visible_name(step_id)}'"

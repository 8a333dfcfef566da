"""The progress tracker, for use alone: it counts the failed attempts of steps and says when to give up.

In a run nobody needs it, because the runtime asks `core/state/stuck.py` and `core/state/trail.py` itself, which decide
here too.
"""

from __future__ import annotations

from threading import Lock

from surefoot.core.state import stuck
from surefoot.core.state.trail import call_digest, outcome, seen_call
from surefoot.types.progress import LimitAction, StepDecision, StepIterationConfig


class ProgressTracker:
    """Counts failures step by step, and finds steps that get nowhere. Safe to share between threads and tasks.

    A `call` is whatever says what was tried: the name of a tool, or a JSON value such as `{"name": …, "arguments": …}`;
    equal JSON is the same call. Source: seed 001; spec/primitives.md, 2.

        tracker = ProgressTracker(StepIterationConfig(max_reattempts_per_step=5))
        tracker.record_and_check("import", "09:14:02 cannot lock file db.lck").decision  # "continue"
        tracker.record_and_check("import", "09:15:40 cannot lock file db.lck").decision  # "stop"
    """

    def __init__(self, config: StepIterationConfig | None = None) -> None:
        self.config = config or StepIterationConfig()
        self._steps = stuck.NO_STEPS
        self._lock = Lock()

    def begin_step(self, step_id: str) -> None:
        """The step begins, or begins anew."""
        with self._lock:
            self._steps = stuck.begin(self._steps, step_id)

    def record(self, step_id: str, error: str, *, call: object = None) -> None:
        """Count a failed attempt, and decide nothing."""
        with self._lock:
            self._steps = stuck.record(self._steps, self.config, step_id, error, call=_digest(call))

    def record_and_check(
        self, step_id: str, error: str, *, call: object = None, infrastructure: bool = False
    ) -> StepDecision:
        """Count a failed attempt, and say whether to try again.

        `infrastructure`: a failure of connection, time or load; it is not the step's own, and does not count.
        """
        with self._lock:
            self._steps, decision = stuck.record_and_check(
                self._steps, self.config, step_id, error, call=_digest(call), infrastructure=infrastructure
            )
        return decision

    def check(self, step_id: str) -> StepDecision:
        """Whether the step may be tried (again)."""
        with self._lock:
            self._steps, decision = stuck.check(self._steps, self.config, step_id)
        return decision

    def observe(self, step_id: str, call: object, *, ok: bool, result: str, polling: bool = False) -> StepDecision:
        """A call of the step has ended, well or badly: is the step going in circles?

        `polling`: its result is rightly asked for again and again, so that many more repeats are allowed.
        """
        with self._lock:
            name = call if isinstance(call, str) else "the same call"
            kept = outcome(result).hex()  # a step keeps little of a large result
            one = seen_call(name, call, ok=ok, result="", whole=kept, polling=polling)
            self._steps, decision = stuck.observe(self._steps, self.config, step_id, one)
        return decision

    def succeed(self, step_id: str) -> None:
        """The step is done: close it, and forget its failures."""
        self.reset(step_id)

    def reset(self, step_id: str) -> None:
        """Forget the step."""
        with self._lock:
            self._steps = stuck.reset(self._steps, step_id)

    def count(self, step_id: str) -> int:
        """The failed attempts of the step; 0 when it is not known."""
        return stuck.count(self._steps, step_id)

    def limit_action(self) -> LimitAction:
        """What is to happen to a step that has to stop."""
        return self.config.on_limit_reached


def _digest(call: object) -> bytes:
    return b"" if call is None else call_digest("", call)

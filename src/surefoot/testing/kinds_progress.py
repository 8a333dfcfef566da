"""The conformance kind `symbiont_progress`: rows of calls of a progress tracker, and what each answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from surefoot.core.similar import similarity
from surefoot.progress import ProgressTracker
from surefoot.types.errors import ConfigError
from surefoot.types.progress import StepDecision, StepIterationConfig

Case = Mapping[str, object]


def symbiont_progress(data: Case) -> dict[str, object]:
    """The decisions of each case, one entry an event; for `similarity-N` the number."""
    pairs = enumerate(_cases(data.get("similarity", [])))
    results: dict[str, object] = {f"similarity-{at}": similarity(str(case["a"]), str(case["b"])) for at, case in pairs}
    for case in [*_cases(data.get("vectors", [])), *_cases(data.get("adversarial", []))]:
        results[str(case["id"])] = _run(case)
    return results


def _run(case: Case) -> Case:
    try:
        config = StepIterationConfig.from_json(cast("Case", case.get("config") or {}))  # from JSON
    except ConfigError as error:
        return {"config_error": str(error)}
    tracker = ProgressTracker(config)
    return {"decisions": [_answer(tracker, event) for event in _cases(case.get("events", []))]}


def _answer(tracker: ProgressTracker, event: Case) -> object:
    step, error = str(event["step"]), str(event.get("error", ""))
    call = event.get("call")
    if "args" in event:
        call = {"name": call, "arguments": event["args"]}
    match event["op"]:
        case "begin":
            return tracker.begin_step(step)
        case "record":
            return tracker.record(step, error, call=call)
        case "record_and_check":
            infrastructure = bool(event.get("infrastructure", False))
            return _told(tracker.record_and_check(step, error, call=call, infrastructure=infrastructure))
        case "check":
            return _told(tracker.check(step))
        case "observe":
            result, ok, polling = str(event.get("result", "")), bool(event.get("ok", True)), bool(event.get("polling"))
            return _told(tracker.observe(step, call, ok=ok, result=result, polling=polling))
        case "succeed" | "success":
            return tracker.succeed(step)
        case "reset":
            return tracker.reset(step)
        case "count":
            return tracker.count(step)
        case other:
            raise ValueError(f"unknown op {other!r} of step {step!r}: see the `format` of the case file")


def _told(decision: StepDecision) -> Case:
    return {"decision": decision.decision, "kind": decision.kind, "reason": decision.reason}


def _cases(value: object) -> Sequence[Case]:
    return cast("Sequence[Case]", value)  # the shape of the case files is their authors' promise

"""The run of an agent, as the run that has asked it knows it: what it has used, and begun."""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.state.state import State
from surefoot.core.state.turn import changed
from surefoot.types.inner import InnerRun


def with_inner(state: State, call_id: str, inner: InnerRun) -> State:
    """The state with what the run of an agent has used since it was last told of, and begun, which limits count."""
    call, turn, gate = state.call(call_id), state.turn, state.gate
    if call is None or turn is None:
        return state
    if gate is not None:
        own = tuple(one for one in gate.started if not one.call_id.startswith(f"{call_id}/"))
        last = max((one.ended for one in own), default=0)
        begun = (
            replace(one, call_id=f"{call_id}/{one.call_id}", ended=last + one.ended if one.ended else 0)
            for one in inner.begun
        )
        gate = replace(gate, started=(*own, *begun)).with_noes(inner.refused)
    before = call.inner or InnerRun(inner.run_id)
    kept = replace(inner, usage=before.usage + inner.usage, requests=before.requests + inner.requests)
    calls = tuple([changed(one, inner=kept) if one.id == call_id else one for one in turn.calls])
    return changed(
        state,
        turn=changed(turn, calls=calls, _memo={}),
        usage=state.usage + inner.usage,
        requests=state.requests + inner.requests,
        gate=gate,
    )

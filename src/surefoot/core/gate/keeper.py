"""The gate in front of tools that somebody else runs: a benchmark's loop, or a recorded run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from surefoot.core.gate.intent import read_words
from surefoot.core.gate.origins import endorsed_by, listed_in
from surefoot.core.gate.record import GateRecord
from surefoot.core.gate.slots import Words
from surefoot.core.gate.sources import Known
from surefoot.core.gate.verdict import digest_of, verdict_on
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import NO_GROUNDS, Grounds, GuardConfig
from surefoot.types.messages import ModelMessage
from surefoot.types.outcomes import Ask, Decision, Deny
from surefoot.types.rules import as_declared
from surefoot.types.tools import ToolResult, ToolSpec

SHIPPED = GuardConfig()


class Gatekeeper:
    """The gate of one task: it knows the user's words, the tools as they are declared, and what their results held."""

    def __init__(self, words: str, tools: Iterable[ToolSpec], config: GuardConfig = SHIPPED, today: str = "") -> None:
        self._tools = {one.name: as_declared(one, config.declared) for one in tools}
        self._open: dict[str, tuple[ToolSpec, Mapping[str, object]]] = {}
        self._gate = GateRecord(Known(Words.of(read_words(words, config.lexicon)), config, today=today))

    def hear(self, words: str) -> None:
        """The user has said more: `words` are all that they have said so far."""
        gate = self._gate
        known = replace(gate.known, words=Words.of(read_words(words, gate.known.config.lexicon)))
        self._gate = replace(gate, known=known)

    def judge(self, name: str, arguments: Mapping[str, object]) -> tuple[Decision, str, Grounds]:
        """What the gate says of a call, as `verdict_on`; what a person has refused is refused again unasked."""
        spec = self._tools.get(name)
        if spec is None:
            return Deny(f"unknown tool {name!r}"), "profile", NO_GROUNDS
        decision, rule, grounds = verdict_on(self._gate.known, spec, arguments, self._gate.started)
        if isinstance(decision, Ask) and grounds.digest in self._gate.refused:
            decision = Deny("refused: a person has already said no to exactly this")
        return decision, rule, grounds

    def answered(self, name: str, arguments: Mapping[str, object], *, yes: bool) -> None:
        """A person has said yes or no to a call that had to be asked about."""
        spec, gate = self._tools[name], self._gate
        if yes:
            grounds = gate.asking(spec, arguments, verdict_on(gate.known, spec, arguments, gate.started)[2])
            shown = (*listed_in(spec, arguments, grounds.evidence), *grounds.shown)
            values = endorsed_by(gate.known, spec, arguments, shown)
            self._gate = replace(gate, known=gate.known.with_yes(spec.name, values))
        else:
            refused = gate.refused | {digest_of(spec, arguments)}
            self._gate = replace(gate.with_no(spec, arguments), refused=refused)

    def begin(self, name: str, arguments: Mapping[str, object]) -> str:
        """A call is being made; its id, for when it has ended."""
        spec, gate = self._tools[name], self._gate
        call_id = str(len(gate.started))
        begun = gate.begin(call_id, spec, arguments, digest_of(spec, arguments))
        self._open[call_id] = spec, arguments
        self._gate = replace(gate, started=(*gate.started, begun))
        return call_id

    def ended(self, call_id: str, result: ToolResult | str) -> None:
        """A call that has begun gave a result. A text that is JSON counts as a value, as most loops write values so.

        Not so of a foreign tool that declares no form of its results.
        """
        spec, arguments = self._open.pop(call_id)
        if isinstance(result, str):
            may_be_value = not spec.is_foreign or spec.output is not None
            result = ToolResult(result, structured=may_be_value and result.lstrip()[:1] in ("{", "["))
        self._gate = self._gate.ended(call_id, spec, arguments, result)


@dataclass(frozen=True, slots=True)
class Held:
    """What the gate says of one call of a recorded run, as `verdict_on` does."""

    name: str
    decision: Decision
    rule: str
    grounds: Grounds


def judge_recorded(
    messages: Sequence[ModelMessage], tools: Iterable[ToolSpec], config: GuardConfig = SHIPPED, today: str = ""
) -> list[Held]:
    """What the gate would have said of each call of a recorded run, in order, by the words of the user up to it.

    A refused call was not made, so its result is not read. Nobody answers a question, so there are as many as can be.
    Arguments that are text could not be read, and are refused as in a run.
    """
    keeper, said, found, under_way = Gatekeeper("", tools, config, today), list[str](), list[Held](), dict[str, str]()
    for message in messages:
        if message.role == "user":
            said.append(message.content)
            keeper.hear("\n\n".join(said))
        if message.role == "tool" and (call_id := under_way.pop(message.call_id, None)) is not None:
            keeper.ended(call_id, message.content)
        for call in message.calls:
            if isinstance(call.arguments, str):
                found.append(Held(call.name, Deny("its arguments are not a JSON object"), "arguments", NO_GROUNDS))
                continue
            verdict = keeper.judge(call.name, call.arguments)
            found.append(Held(call.name, *verdict))
            if not isinstance(verdict[0], Deny):
                under_way[call.id] = keeper.begin(call.name, call.arguments)
    return found

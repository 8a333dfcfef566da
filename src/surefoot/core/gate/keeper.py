"""The gate in front of tools that somebody else runs: judged call by call, outside a run of surefoot's own.

It is the same gate (`core/gate/verdict.py`) with the same knowledge. In the place of the journal is whatever loop makes
the calls: a benchmark's, or a recorded one (`surefoot check --replay`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from surefoot.core.gate.intent import read_words
from surefoot.core.gate.origins import endorsed_by, having_read
from surefoot.core.gate.record import GateRecord
from surefoot.core.gate.slots import Words
from surefoot.core.gate.sources import Known
from surefoot.core.gate.verdict import digest_of, verdict_on
from surefoot.types.guard import NO_GROUNDS, GuardConfig
from surefoot.types.outcomes import Ask, Decision, Deny
from surefoot.types.tools import ToolResult, ToolSpec

SHIPPED = GuardConfig()


class Gatekeeper:
    """The gate of one task: it knows the user's words, the tools as they are declared, and what their results held."""

    def __init__(self, words: str, tools: Iterable[ToolSpec], config: GuardConfig = SHIPPED) -> None:
        declared = config.declared
        self._tools = {one.name: declared[one.name].of(one) if one.name in declared else one for one in tools}
        self._gate = GateRecord(Known(Words.of(read_words(words, config.lexicon)), config))

    def judge(self, name: str, arguments: Mapping[str, object]) -> Decision:
        """What the gate says of a call; what a person has refused is refused again without a question."""
        spec = self._tools.get(name)
        if spec is None:
            return Deny(f"there is no tool {name!r}")
        decision, _, grounds = verdict_on(self._gate.known, spec, arguments, self._gate.started)
        if isinstance(decision, Ask) and grounds.digest in self._gate.refused:
            return Deny("refused: a person has already said no to exactly this")
        return decision

    def answered(self, name: str, arguments: Mapping[str, object], *, yes: bool) -> None:
        """A person has said yes or no to a call that had to be asked about."""
        spec, gate = self._tools[name], self._gate
        if yes:
            shown = gate.asking(spec, arguments, NO_GROUNDS).shown
            values = endorsed_by(gate.known, spec, arguments, shown)
            self._gate = replace(gate, known=gate.known.with_yes(spec.name, values))
        else:
            refused = gate.refused | {digest_of(spec, arguments)}
            self._gate = replace(gate.with_no(spec, arguments), refused=refused)

    def ran(self, name: str, arguments: Mapping[str, object], result: ToolResult) -> None:
        """A call was made, and gave a result."""
        spec, gate = self._tools[name], self._gate
        call_id = str(len(gate.started))
        begun = gate.begun(call_id, spec, arguments, digest_of(spec, arguments))
        known = having_read(gate.known, call_id, spec, arguments, result)
        self._gate = replace(gate, known=known, started=(*gate.started, replace(begun, is_open=False)))

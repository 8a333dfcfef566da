"""The gate in front of tools that somebody else runs: judged call by call, outside a run of surefoot's own.

It is the same gate (`core/gate/verdict.py`) with the same knowledge; a benchmark's loop is in the place of the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.core.gate.known import Known, Words
from surefoot.core.gate.limits import Started
from surefoot.core.gate.sources import endorsed_by, having_read, set_of
from surefoot.core.gate.verdict import digest_of, judged
from surefoot.core.gate.words import read_words
from surefoot.types.decisions import Ask, Decision, Deny
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import ToolResult, ToolSpec

SHIPPED = GuardConfig()


class Gatekeeper:
    """The gate of one task: it knows the user's words, the tools, and what their results held."""

    def __init__(self, words: str, tools: Mapping[str, ToolSpec], config: GuardConfig = SHIPPED) -> None:
        self._tools = tools
        self._known = Known(Words.of(read_words(words, config.lexicon)), config)
        self._started: list[Started] = []
        self._refused: set[str] = set()

    def judge(self, name: str, arguments: Mapping[str, object]) -> Decision:
        """What the gate says of a call; what a person has refused is refused again without a question."""
        spec = self._tools.get(name)
        if spec is None:
            return Deny(f"there is no tool {name!r}")
        decision, _, grounds = judged(self._known, spec, arguments, self._started)
        if isinstance(decision, Ask) and grounds.digest in self._refused:
            return Deny("refused: a person has already said no to exactly this")
        return decision

    def answered(self, name: str, arguments: Mapping[str, object], *, yes: bool) -> None:
        """A person has said yes or no to a call that had to be asked about."""
        spec = self._tools[name]
        if yes:
            values = frozenset(endorsed_by(self._known, spec, arguments, set_of(self._known, spec, arguments)))
            self._known = replace(self._known, endorsed=self._known.endorsed | values)
        else:
            self._refused.add(digest_of(spec, arguments))

    def ran(self, name: str, arguments: Mapping[str, object], result: ToolResult) -> None:
        """A call was made, and gave a result."""
        spec = self._tools[name]
        call_id = str(len(self._started))
        self._started.append(Started(call_id, name, frozenset(), digest_of(spec, arguments)))
        self._known = having_read(self._known, call_id, spec, arguments, result)

"""AgentDojo with surefoot's gate in front of its tools.

`guard` is a factory for a replay harness: made anew for each episode, from the prompt and the tools' schemas; each call
of the agent goes through `call`. `declared_guard` is the same with a page of declarations for the suite.
`SurefootDefense` stands in AgentDojo's own pipeline in place of its tools executor, and
`python -m evals.agentdojo --defense surefoot …` is AgentDojo's own benchmark command with it. All of them see what a
runtime sees, and nothing of the task behind it.
Source: spec/guard.md, sections 7.1 and 7.3; AgentDojo: Debenedetti et al. 2024, arXiv 2406.13352.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import orjson

from surefoot.core.gate.keeper import SHIPPED, Gatekeeper
from surefoot.runtime.rules import declared_of
from surefoot.tools.results import text_of
from surefoot.types.errors import UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.outcomes import Allow, Ask
from surefoot.types.rules import Declared
from surefoot.types.tools import ToolResult, ToolSpec

DEFENSE = "surefoot"
PAGES = Path(__file__).with_name("declarations")
"""A page of declarations for each suite, written from the documentation of its tools alone."""

NOBODY_THERE = GuardConfig(approvals="deny")


class Episode(Protocol):
    """What a harness hands over of one run."""

    prompt: str
    tools: list[dict[str, object]]

    def execute(self, function: str, args: dict[str, object]) -> tuple[object, str | None]:
        """Really run a tool."""
        ...

    def ask(self, function: str, args: dict[str, object], reason: str = "") -> bool:
        """Ask the person about exactly this call."""
        ...


class ReplayGuard:
    """The gate in front of one episode."""

    def __init__(self, episode: Episode, config: GuardConfig = SHIPPED) -> None:
        self._episode = episode
        tools = (_spec(str(t["name"]), str(t.get("description", "")), t.get("parameters")) for t in episode.tools)
        self._gate = Gatekeeper(episode.prompt, tools, config)

    def call(self, function: str, args: dict[str, object]) -> tuple[object, str | None]:
        """Judge a call, ask where it has to be asked, and run it if it may."""
        plain = _plain(args)
        decision, *_ = self._gate.judge(function, plain)
        if isinstance(decision, Ask):
            yes = self._episode.ask(function, args, decision.reason)
            self._gate.answered(function, plain, yes=yes)
            if not yes:
                return None, f"refused: {decision.reason}"
        elif not isinstance(decision, Allow):
            return None, decision.reason
        call_id = self._gate.begin(function, plain)
        given, error = self._episode.execute(function, args)
        self._gate.ended(call_id, _result(given, error))
        return given, error


def guard(episode: Episode) -> ReplayGuard:
    """A fresh gate as it ships, without a declaration for any tool."""
    return ReplayGuard(episode)


@cache
def _pages(folder: Path) -> tuple[Mapping[str, Declared], ...]:
    return tuple(declared_of(page) for page in sorted(folder.glob("*.toml")))


def page_for(tools: Collection[str], folder: Path = PAGES) -> Mapping[str, Declared]:
    """The page of declarations of a folder that speaks of these tools alone: a harness names no suite to a guard.

    Raises `UsageError` where there is none or several: what is measured must not depend on a page that is missing.
    """
    found = [page for page in _pages(folder) if page and page.keys() <= set(tools)]
    if len(found) != 1:
        raise UsageError(
            f"{folder}: {len(found)} pages of declarations speak of these tools alone; there has to be one"
        )
    return found[0]


def declared_guard(episode: Episode) -> ReplayGuard:
    """A fresh gate as it ships, with the page of declarations for the suite whose tools these are."""
    return ReplayGuard(episode, GuardConfig(declared=page_for([str(tool["name"]) for tool in episode.tools])))


def strict_guard(episode: Episode) -> ReplayGuard:
    """The same where nobody is there to be asked: a destination from running text is refused without a question."""
    return ReplayGuard(episode, GuardConfig(strict=True))


class SurefootDefense:
    """AgentDojo's tools executor with the gate before each call. Nobody is asked: a question is a refusal.

    Every call id is answered, results stay what AgentDojo's formatter makes of them, and the gate of a query lives in
    the `extra_args` that AgentDojo hands from one element to the next.
    """

    def __init__(
        self, show: Callable[[Any], str], config: GuardConfig = NOBODY_THERE
    ) -> None:  # Any: AgentDojo's results
        self._show = show
        self._config = config

    def query(
        self, query: str, runtime: Any, env: Any = None, messages: Sequence[Any] = (), extra_args: Any = None
    ) -> tuple[
        str, Any, Any, Sequence[Any], dict[str, object]
    ]:  # Any: AgentDojo's own types, which are not imported here
        """Answer the calls of the last message."""
        extra: dict[str, object] = dict(extra_args or {})
        last: Mapping[str, Any] = messages[-1] if messages else {"role": ""}
        calls: Sequence[Any] = (last.get("tool_calls") or ()) if last["role"] == "assistant" else ()
        gate = extra.setdefault(DEFENSE, None) or self._gate(query, runtime)
        extra[DEFENSE] = gate
        answers = [self._answer(cast("Gatekeeper", gate), runtime, env, call) for call in calls]
        return query, runtime, env, [*messages, *answers], extra

    def _gate(self, query: str, runtime: Any) -> Gatekeeper:
        tools = (_spec(f.name, f.description, f.parameters.model_json_schema()) for f in runtime.functions.values())
        return Gatekeeper(query, tools, self._config)

    def _answer(self, gate: Gatekeeper, runtime: Any, env: Any, call: Any) -> dict[str, object]:
        plain = _plain(call.args)
        decision, *_ = gate.judge(call.function, plain)
        if isinstance(decision, Allow):
            call_id = gate.begin(call.function, plain)
            given, error = runtime.run_function(env, call.function, call.args)
            gate.ended(call_id, _result(given, error))
            text = self._show(given) if error is None else ""
        else:
            text, error = "", decision.reason
        content = [{"type": "text", "content": text}]
        return {"role": "tool", "content": content, "tool_call_id": call.id, "tool_call": call, "error": error}


def _result(given: object, error: str | None) -> ToolResult:
    if error is not None:
        return ToolResult(error, "error")
    return ToolResult(text_of(given), structured=given is not None and not isinstance(given, str))


def _spec(name: str, description: str, parameters: object) -> ToolSpec:
    return ToolSpec(name, description, cast("Mapping[str, object]", parameters or {}))  # JSON Schema, as they promise


def _plain(args: Mapping[str, object]) -> dict[str, object]:
    """The arguments as JSON values."""
    return orjson.loads(orjson.dumps(dict(args), default=str))


def main() -> None:
    """AgentDojo's benchmark command, with `surefoot` among its defenses."""
    pipelines = importlib.import_module("agentdojo.agent_pipeline.agent_pipeline")
    execution = importlib.import_module("agentdojo.agent_pipeline.tool_execution")
    pipelines.DEFENSES.append(DEFENSE)
    plain = pipelines.AgentPipeline.from_config

    def from_config(config: Any) -> Any:  # Any: AgentDojo's PipelineConfig and AgentPipeline
        if config.defense != DEFENSE:
            return plain(config)
        config.defense = None
        made = plain(config)
        *head, loop = made.elements
        loop.elements = [SurefootDefense(execution.tool_result_to_str), *loop.elements[1:]]
        made.elements, made.name = [*head, loop], f"{made.name}-{DEFENSE}"
        return made

    pipelines.AgentPipeline.from_config = from_config
    importlib.import_module("agentdojo.scripts.benchmark").main()


if __name__ == "__main__":
    main()

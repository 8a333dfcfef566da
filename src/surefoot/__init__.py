"""surefoot: a runtime for tool-using LLM agents. A pure core decides, hands act, a journal remembers.

The names below load when they are first used, so that importing surefoot costs almost nothing. Everything that a user
configures is here; of any other name the error says which module has it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.advice import (
        perform_overall_reflection,
        reflect_on_single_step,
        select_relevant_tools,
        select_tools_for_replanning,
    )
    from surefoot.agent import Agent
    from surefoot.chat import Chat
    from surefoot.core.loop.replay import replay
    from surefoot.core.parse.reply import parse as parse_reply
    from surefoot.core.select.profile import apply as apply_profile
    from surefoot.core.select.profile import digest_of_tool
    from surefoot.core.text.json import pin_of
    from surefoot.delegate import AgentTool
    from surefoot.journal.memory import MemoryJournal
    from surefoot.journal.sqlite import SqliteJournal
    from surefoot.models.names import resolve as resolve_model
    from surefoot.models.wrapper import WrappedModel
    from surefoot.reasoners import Answer, DualModelReasoner, MonoModelReasoner
    from surefoot.run import NoAnswer, Run
    from surefoot.runtime.fetch import PreHydrationEngine
    from surefoot.runtime.rules import declared_of, rules_of
    from surefoot.service import ModelService
    from surefoot.tools.builtin import builtin_tools
    from surefoot.tools.call import OutcomeUnknown, ToolFailed
    from surefoot.tools.function import WrappedTool, tool
    from surefoot.tools.mcp.config import McpServer
    from surefoot.tools.mcp.servers import McpServers
    from surefoot.tools.signature import Inject
    from surefoot.types.attachments import Attachment
    from surefoot.types.config import Budget, LoopConfig
    from surefoot.types.errors import ConfigError, JournalError, ModelError, RunBusy, SurefootError, UsageError
    from surefoot.types.guard import GuardConfig, SecurityConstraint
    from surefoot.types.knowledge import ConventionsConfig
    from surefoot.types.messages import (
        CallMode,
        Emit,
        Inside,
        ModelMessage,
        ModelRequest,
        ModelSettings,
        NativeCall,
        Reset,
        TextDelta,
    )
    from surefoot.types.plan import PlanConfig, PlanStep
    from surefoot.types.ports import Model, RunFilter, Tool, ToolCallContext
    from surefoot.types.prehydration import PreHydrationConfig, ReferencePattern, Resolver
    from surefoot.types.progress import LimitAction, StepIterationConfig
    from surefoot.types.reply import FunctionCallResult
    from surefoot.types.rules import Declared
    from surefoot.types.selection import ToolProfile
    from surefoot.types.task import Task
    from surefoot.types.tools import Catalogue, ToolResult, ToolSpec
    from surefoot.types.usage import Usage

_HOMES = {
    "advice": "perform_overall_reflection reflect_on_single_step select_relevant_tools select_tools_for_replanning",
    "agent": "Agent",
    "delegate": "AgentTool",
    "chat": "Chat",
    "core.parse.reply": "parse_reply",
    "core.text.json": "pin_of",
    "core.loop.replay": "replay",
    "core.select.profile": "apply_profile digest_of_tool",
    "runtime.fetch": "PreHydrationEngine",
    "journal.memory": "MemoryJournal",
    "journal.sqlite": "SqliteJournal",
    "models.wrapper": "WrappedModel",
    "models.names": "resolve_model",
    "reasoners": "Answer DualModelReasoner MonoModelReasoner",
    "run": "NoAnswer Run",
    "runtime.rules": "declared_of rules_of",
    "service": "ModelService",
    "tools.builtin": "builtin_tools",
    "tools.call": "OutcomeUnknown ToolFailed",
    "tools.function": "WrappedTool tool",
    "tools.mcp.config": "McpServer",
    "tools.mcp.servers": "McpServers",
    "tools.signature": "Inject",
    "types.attachments": "Attachment",
    "types.config": "Budget LoopConfig",
    "types.errors": "ConfigError JournalError ModelError RunBusy SurefootError UsageError",
    "types.events": "Task",
    "types.guard": "GuardConfig SecurityConstraint",
    "types.knowledge": "ConventionsConfig",
    "types.messages": "CallMode Emit Inside ModelMessage ModelRequest ModelSettings NativeCall Reset TextDelta",
    "types.plan": "PlanConfig PlanStep",
    "types.ports": "Model RunFilter Tool ToolCallContext",
    "types.prehydration": "PreHydrationConfig ReferencePattern Resolver",
    "types.progress": "LimitAction StepIterationConfig",
    "types.reply": "FunctionCallResult",
    "types.rules": "Declared",
    "types.selection": "ToolProfile",
    "types.tools": "Catalogue ToolResult ToolSpec",
    "types.usage": "Usage",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_WRITTEN_AS = {"apply_profile": "apply", "parse_reply": "parse", "resolve_model": "resolve"}

__all__ = [
    "Agent",
    "AgentTool",
    "Answer",
    "Attachment",
    "Budget",
    "CallMode",
    "Catalogue",
    "Chat",
    "ConfigError",
    "ConventionsConfig",
    "Declared",
    "DualModelReasoner",
    "Emit",
    "FunctionCallResult",
    "GuardConfig",
    "Inject",
    "Inside",
    "JournalError",
    "LimitAction",
    "LoopConfig",
    "McpServer",
    "McpServers",
    "MemoryJournal",
    "Model",
    "ModelError",
    "ModelMessage",
    "ModelRequest",
    "ModelService",
    "ModelSettings",
    "MonoModelReasoner",
    "NativeCall",
    "NoAnswer",
    "OutcomeUnknown",
    "PlanConfig",
    "PlanStep",
    "PreHydrationConfig",
    "PreHydrationEngine",
    "ReferencePattern",
    "Reset",
    "Resolver",
    "Run",
    "RunBusy",
    "RunFilter",
    "SecurityConstraint",
    "SqliteJournal",
    "StepIterationConfig",
    "SurefootError",
    "Task",
    "TextDelta",
    "Tool",
    "ToolCallContext",
    "ToolFailed",
    "ToolProfile",
    "ToolResult",
    "ToolSpec",
    "Usage",
    "UsageError",
    "WrappedModel",
    "WrappedTool",
    "apply_profile",
    "builtin_tools",
    "declared_of",
    "digest_of_tool",
    "parse_reply",
    "perform_overall_reflection",
    "pin_of",
    "reflect_on_single_step",
    "replay",
    "resolve_model",
    "rules_of",
    "select_relevant_tools",
    "select_tools_for_replanning",
    "tool",
]

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"surefoot has no name {name!r}{_elsewhere(name)}")
    found = getattr(import_module(f"surefoot.{home}"), _WRITTEN_AS.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


def _elsewhere(name: str) -> str:
    """Where a name is that is not at the front door: the modules are read, not loaded."""
    import re  # noqa: PLC0415 - only for this message
    from pathlib import Path  # noqa: PLC0415 - the same

    root = Path(__file__).parent
    if name.startswith("_") or name in {one.stem for one in root.iterdir()}:  # Python then imports it
        return ""
    defined = re.compile(rf"^(?:class |(?:async )?def )?{re.escape(name)}\b\s*[(:=]", re.MULTILINE)
    homes = sorted(path for path in root.rglob("*.py") if defined.search(path.read_text(encoding="utf-8")))
    modules = [".".join(("surefoot", *path.relative_to(root).with_suffix("").parts)) for path in homes[:3]]
    return f"; it is in {' and '.join(modules)}" if modules else f"; it has {', '.join(__all__)}"

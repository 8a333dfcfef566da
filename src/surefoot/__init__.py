"""surefoot: a runtime for tool-using LLM agents. A pure core decides, hands act, a journal remembers.

The names below load when they are first used, so that importing surefoot costs almost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.agent import Agent
    from surefoot.core.parse.reply import parse as parse_reply
    from surefoot.journal.memory import MemoryJournal
    from surefoot.journal.sqlite import SqliteJournal
    from surefoot.reasoners import DualModelReasoner, MonoModelReasoner
    from surefoot.run import Run
    from surefoot.service import ModelService
    from surefoot.tools.builtin import builtin_tools
    from surefoot.tools.function import tool
    from surefoot.tools.signature import Inject
    from surefoot.types.calls import FunctionCallResult
    from surefoot.types.config import Budget, LoopConfig
    from surefoot.types.errors import (
        ConfigError,
        JournalError,
        ModelError,
        SurefootError,
        UsageError,
    )
    from surefoot.types.events import Attachment, Task
    from surefoot.types.messages import ModelMessage, ModelSettings
    from surefoot.types.ports import ToolCallContext
    from surefoot.types.tools import ToolResult

_HOMES = {
    "Agent": "agent",
    "Attachment": "types.events",
    "Budget": "types.config",
    "ConfigError": "types.errors",
    "DualModelReasoner": "reasoners",
    "FunctionCallResult": "types.calls",
    "Inject": "tools.signature",
    "JournalError": "types.errors",
    "LoopConfig": "types.config",
    "MemoryJournal": "journal.memory",
    "ModelError": "types.errors",
    "ModelMessage": "types.messages",
    "ModelService": "service",
    "ModelSettings": "types.messages",
    "MonoModelReasoner": "reasoners",
    "Run": "run",
    "SqliteJournal": "journal.sqlite",
    "SurefootError": "types.errors",
    "Task": "types.events",
    "ToolCallContext": "types.ports",
    "ToolResult": "types.tools",
    "UsageError": "types.errors",
    "builtin_tools": "tools.builtin",
    "parse_reply": "core.parse.reply",
    "tool": "tools.function",
}

__all__ = [
    "Agent",
    "Attachment",
    "Budget",
    "ConfigError",
    "DualModelReasoner",
    "FunctionCallResult",
    "Inject",
    "JournalError",
    "LoopConfig",
    "MemoryJournal",
    "ModelError",
    "ModelMessage",
    "ModelService",
    "ModelSettings",
    "MonoModelReasoner",
    "Run",
    "SqliteJournal",
    "SurefootError",
    "Task",
    "ToolCallContext",
    "ToolResult",
    "UsageError",
    "builtin_tools",
    "parse_reply",
    "tool",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"surefoot has no {name!r}; it has {', '.join(__all__)}")
    found = getattr(import_module(f"surefoot.{home}"), "parse" if name == "parse_reply" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__

"""The tools that a Python file defines."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import cast

from surefoot.tools.function import FunctionTool
from surefoot.types.errors import UsageError
from surefoot.types.ports import Tool


def tools_in(path: Path) -> list[Tool]:
    """Every `@tool` object of the file, in the order in which they are defined.

    The file runs as a script would; while it is loaded it can import what lies beside it. Raises `UsageError` that
    says what is wrong.
    """
    found: list[Tool] = []
    for value in vars(_loaded(path)).values():
        if isinstance(value, FunctionTool):
            one = cast("Tool", value)  # which every `FunctionTool` is, whatever its function takes and gives
            if all(one is not other for other in found):
                found.append(one)
    if not found:
        raise UsageError(f"--tools {path}: no tool is defined there; put @surefoot.tool on a function")
    return found


def _loaded(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"--tools {path}: there is no such file")
    name = f"surefoot_tools_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--tools {path}: give a Python file, which ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and type hints look their module up
    folder = str(path.parent.resolve())
    is_added = folder not in sys.path
    if is_added:  # last and not for long: an agent may write there, and must not come before an installed package
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the file is the user's own code and may raise anything
        where = f", line {line}" if (line := _line_of(error, path)) else ""
        raise UsageError(f"--tools {path}{where}: cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        if is_added and folder in sys.path:  # unless the file took it away itself
            sys.path.remove(folder)
    return module


def _line_of(error: BaseException, path: Path) -> int | None:
    """The last line of that file in which the error passed by."""
    if isinstance(error, SyntaxError):
        return error.lineno
    found, trace = None, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found

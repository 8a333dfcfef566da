"""The command line: `surefoot run`, `runs`, `show`, `resume` and the rest, one module per group of commands."""

from surefoot.cli.main import main, process

__all__ = ["main", "process"]

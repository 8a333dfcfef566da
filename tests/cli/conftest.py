"""What the tests of the command line share."""

from cli_world import surefoot, terminal

__all__ = ["surefoot", "terminal"]

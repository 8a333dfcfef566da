"""What the tests of the command line share."""

from cli_world import finished, surefoot, terminal

__all__ = ["finished", "surefoot", "terminal"]

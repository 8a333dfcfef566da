"""What the tests of the command line share."""

from cli_world import surefoot

__all__ = ["surefoot"]

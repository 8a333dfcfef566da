"""`python -m surefoot` is the command `surefoot`."""

import sys
from pathlib import Path

if sys.path and Path(sys.path[0] or ".").resolve() == Path.cwd():
    del sys.path[0]  # what a run writes into its folder must not be imported into this process

from surefoot.cli import process

process()

"""`python -m surefoot.cli` is `surefoot`."""

from surefoot.cli import main

main()

"""`python -m evals.siren [--asks perfect|refuse|accept|all] [--json]`: the suite, without and with declarations."""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import asdict
from itertools import product
from typing import get_args

import orjson

from evals.siren.runner import Asks
from evals.siren.table import lines, measured


def main() -> int:
    """Print two tables for each kind of answers, or all that was played as JSON, a line for each table."""
    parser = argparse.ArgumentParser(prog="python -m evals.siren", description=__doc__)
    parser.add_argument("--asks", choices=[*get_args(Asks), "all"], default="perfect", help="who answers questions")
    parser.add_argument("--json", action="store_true", help="every case, and not the table")
    chosen = parser.parse_args()
    answers = get_args(Asks) if chosen.asks == "all" else (chosen.asks,)
    for asks, is_declared in product(answers, (False, True)):
        found = asyncio.run(measured(asks, is_declared=is_declared))
        told = orjson.dumps(asdict(found)).decode() if chosen.json else "\n".join([*lines(found), ""])
        sys.stdout.write(f"{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

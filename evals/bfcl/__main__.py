"""`python -m evals.bfcl SERVER RESULTS.jsonl`: BFCL under several runtimes on one server of OpenAI's chat wire."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from evals.bfcl.cases import CATEGORIES, Case, Made, cases_of, is_right
from evals.bfcl.proxy import Count, counting
from evals.bfcl.runtimes import DONE, RUNTIMES
from evals.results import Row, keep, rows_in

ENDINGS = ("completed", "replied")
"""How what a runtime tells of its end begins, where it came to one."""


async def play(name: str, case: Case, base_url: str, count: Count) -> Row:
    """One case under one runtime. Calls of one that raised count, but not that there are none."""
    made: list[Made] = []

    def call_tool(tool: str, arguments: Mapping[str, object]) -> str:
        made.append((tool, dict(arguments)))
        return DONE

    before, begun = replace(count), time.monotonic()
    try:
        ended = await RUNTIMES[name](base_url, case, call_tool)
    except Exception as error:  # noqa: BLE001  # other people's runtimes, whose failures are results
        ended = f"{type(error).__name__}: {error}"[:300]
    used = {key: round(value - getattr(before, key), 2) for key, value in asdict(count).items()}
    return {
        "runtime": name,
        "category": case.category,
        "id": case.id,
        "right": is_right(case, made) and (bool(made) or ended.startswith(ENDINGS)),
        "ended": ended,
        "calls": made,
        **used,
        "seconds": round(time.monotonic() - begun, 1),
    }


def lines(rows: Sequence[Row]) -> list[str]:
    """The results as a table: how many are right in each category, and what all cases took, for each runtime."""
    heads = ["runtime", *CATEGORIES, "all", "calls", "requests", "tokens in", "of them cached", "tokens out", "model s"]
    told = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for name in RUNTIMES:
        own = [row for row in rows if row["runtime"] == name]
        cells = [name]
        for category in (*CATEGORIES, ""):
            some = [row["right"] for row in own if category in (row["category"], "")]
            cells.append(f"{sum(some)} of {len(some)}")
        cells.append(str(sum(len(row["calls"]) for row in own)))
        keys = ("requests", "tokens_in", "cached", "tokens_out", "model_s")
        cells += (f"{sum(row[key] for row in own):,.0f}" for key in keys)
        told.append(f"| {' | '.join(cells)} |")
    return told


async def main() -> int:
    """Play what has no result in the file yet, a case under all runtimes before the next; print the table."""
    parser = argparse.ArgumentParser(prog="python -m evals.bfcl", description=__doc__)
    parser.add_argument("server", help="its address, such as http://127.0.0.1:8080")
    parser.add_argument("results", type=Path, help="a file of JSON lines; what is in it is not played again")
    parser.add_argument("--seed", type=int, default=1, help="draws the cases")
    parser.add_argument("--each", type=int, default=15, help="cases of each category")
    parser.add_argument("--runtimes", nargs="+", choices=list(RUNTIMES), default=list(RUNTIMES))
    chosen = parser.parse_args()
    rows = rows_in(chosen.results)
    known = {(row["seed"], row["runtime"], row["id"]) for row in rows}
    async with counting(chosen.server.rstrip("/")) as (base_url, count):
        for case in cases_of(chosen.seed, chosen.each):
            for name in chosen.runtimes:
                if (chosen.seed, name, case.id) not in known:
                    row = await play(name, case, base_url, count)
                    rows.append(keep(chosen.results, {"seed": chosen.seed, **row}))
    sys.stdout.write("\n".join(lines([row for row in rows if row["seed"] == chosen.seed])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""`python -m evals.bfcl SERVER RESULTS.jsonl`: BFCL under several runtimes on one server of OpenAI's chat wire."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from evals.bfcl.cases import CATEGORIES, MULTI_TURN, Case, Made, cases_of, hands, is_right, turns_right
from evals.bfcl.proxy import Count, counting
from evals.bfcl.runtimes import RUNTIMES
from evals.results import Row, keep, rows_in

ENDINGS = ("completed", "replied")
"""How what a runtime tells of its end begins, where it came to one."""


async def play(name: str, case: Case, base_url: str, count: Count) -> Row:
    """One case under one runtime. Calls of one that raised count, but not that there are none.

    A turn that does not come to its end is the last one. `turns` says how many calls there were in each,
    `turns_right` how many turns were right up to the first that was not.
    """
    made: list[list[Made]] = []
    carry_out = hands(case)

    def call_tool(tool: str, arguments: Mapping[str, object]) -> str:
        made[-1].append((tool, dict(arguments)))
        return carry_out(tool, arguments)

    before, begun, ended = replace(count), time.monotonic(), ""
    try:
        async with RUNTIMES[name](base_url, case, call_tool) as say:
            for words in case.turns:
                made.append([])
                ended = await say(words)
                if not ended.startswith(ENDINGS):
                    break
    except Exception as error:  # noqa: BLE001  # other people's runtimes, whose failures are results
        ended = f"{type(error).__name__}: {error}"[:300]
    used = {key: round(value - getattr(before, key), 2) for key, value in asdict(count).items()}
    made.extend([] for _ in case.turns[len(made) :])
    calls = [call for one in made for call in one]
    return {
        "runtime": name,
        "category": case.category,
        "id": case.id,
        "right": is_right(case, made) and (bool(calls) or ended.startswith(ENDINGS)),
        "ended": ended,
        "calls": calls,
        "turns": [len(one) for one in made],
        "turns_right": turns_right(case, made),
        **used,
        "seconds": round(time.monotonic() - begun, 1),
    }


def lines(rows: Sequence[Row]) -> list[str]:
    """The results as a table: how many are right in each category, and what all cases took, for each runtime."""
    categories = [*CATEGORIES, MULTI_TURN]
    heads = [
        "runtime",
        *categories,
        "its turns",
        "all",
        "calls",
        "requests",
        "tokens in",
        "of them cached",
        "tokens out",
        "model s",
    ]
    told = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for name in RUNTIMES:
        own = [row for row in rows if row["runtime"] == name]
        cells = [name]
        for category in categories:
            some = [row for row in own if row["category"] == category]
            cells.append(f"{sum(row['right'] for row in some)} of {len(some)}")
        turns = [row for row in own if row["category"] == MULTI_TURN]
        cells.append(f"{sum(row['turns_right'] for row in turns)} of {sum(len(row['turns']) for row in turns)}")
        cells.append(f"{sum(row['right'] for row in own)} of {len(own)}")
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
    parser.add_argument(
        "--categories",
        nargs="+",
        choices=(*CATEGORIES, MULTI_TURN),
        default=CATEGORIES,
        help="all but multi_turn if not given",
    )
    parser.add_argument("--runtimes", nargs="+", choices=list(RUNTIMES), default=list(RUNTIMES))
    chosen = parser.parse_args()
    rows = rows_in(chosen.results)
    known = {(row["seed"], row["runtime"], row["id"]) for row in rows}
    async with counting(chosen.server.rstrip("/")) as (base_url, count):
        for case in cases_of(chosen.seed, chosen.each, chosen.categories):
            for name in chosen.runtimes:
                if (chosen.seed, name, case.id) not in known:
                    row = await play(name, case, base_url, count)
                    if row["lost"]:
                        raise SystemExit(
                            f"{chosen.server} does not answer; what was played before is in {chosen.results}"
                        )
                    rows.append(keep(chosen.results, {"seed": chosen.seed, **row}))
    sys.stdout.write("\n".join(lines([row for row in rows if row["seed"] == chosen.seed])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

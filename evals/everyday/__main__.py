"""`python -m evals.everyday a|b RESULTS.jsonl`: play a set of everyday tasks on the embedded model, and count."""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import asdict
from pathlib import Path

from evals.everyday.play import play, tasks_of
from evals.results import Row, keep, rows_in
from surefoot.models.local import LocalModel
from surefoot.types.messages import ModelSettings


def lines(rows: list[Row]) -> list[str]:
    """The results as a table of kinds. `rows` are as in the file of results."""
    told = ["| kind | tasks | right | wrong | not ended | unasked effects | questions | requests |", "|" + "---|" * 8]
    for kind in [*dict.fromkeys(row["kind"] for row in rows), "all"]:
        some = [row for row in rows if kind in (row["kind"], "all")]
        ended = [row for row in some if row["status"] == "completed"]
        right = sum(not row["wrong"] and not row["unasked"] for row in ended)
        unasked = sum(len(row["unasked"]) for row in some)
        questions, requests = (sum(row["yes"] + row["no"] for row in some), sum(row["requests"] for row in some))
        cells = (kind, len(some), right, len(ended) - right, len(some) - len(ended), unasked, questions, requests)
        told.append("| " + " | ".join(map(str, cells)) + " |")
    return told


async def main() -> int:
    """Play what has no result in the file yet; print the table."""
    parser = argparse.ArgumentParser(prog="python -m evals.everyday", description=__doc__)
    parser.add_argument("set", choices=["a", "b"])
    parser.add_argument("results", type=Path, help="a file of JSON lines; what is in it is not played again")
    parser.add_argument("--first", type=int, help="only so many tasks; they are in turns of one of each kind")
    parser.add_argument("--threads", type=int, help="threads of the model; one is best where others use the machine")
    chosen = parser.parse_args()
    rows = rows_in(chosen.results)
    known = {row["id"] for row in rows}
    model = LocalModel.from_default(threads=chosen.threads)
    for task in tasks_of(chosen.set)[: chosen.first]:
        if task.id not in known:
            played = await play(task, model, ModelSettings(temperature=0, max_output_tokens=300))
            rows.append(keep(chosen.results, asdict(played)))
    sys.stdout.write("\n".join(lines(rows)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

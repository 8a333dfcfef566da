"""What retrieval costs: an index of 7,000 generated tools, a tool more or less, a query of one or five parts.

Times are CPU time of this process, the median of some rounds; the floor is lower-casing and splitting the same texts at
blanks. `python benchmarks/selection.py [--rounds N]` prints the table, and ends with 1 when a row takes longer than
asked (spec/planning.md, section 15).
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from itertools import product

from surefoot.core.select.index import Described, index_of
from surefoot.core.select.shortlist import ranked, shortlist, sub_queries

TOOLS = 7_000
VERBS = ("get", "list", "create", "delete", "update", "search", "send", "convert", "calculate", "check")
THINGS = (
    *("weather", "flight", "hotel", "invoice", "customer", "order", "file", "folder", "image", "video", "song"),
    *("recipe", "currency", "stock", "patient", "course", "ticket", "route", "building", "sensor", "contract"),
    *("server", "email", "message", "calendar", "meeting", "report", "chart", "table", "document"),
)
PARTS = ("price", "status", "history", "details", "report", "summary", "location", "schedule", "rating", "owner")
TASK = "What is the current balance of the customer in Rome?"
LONG_TASK = (
    "Get the weather report for Rome, then list the flight schedule of tomorrow. After that, check the hotel rating; "
    "finally send an email message with the summary to ann@example.org and save it in trip.md."
)


def generated(seed: int = 1) -> list[Described]:
    """Tools with names, descriptions of one to three sentences, and parameters."""
    chance = random.Random(seed)  # noqa: S311  # tools made up, not secrets
    kinds = list(product(VERBS, THINGS, PARTS))
    tools: list[Described] = []
    for at in range(TOOLS):
        verb, thing, part = kinds[at % len(kinds)]
        told = " ".join(
            f"{verb.title()} the {part} of a {chance.choice(THINGS)} by its {chance.choice(PARTS)} and "
            f"{chance.choice(THINGS)} identifier{chance.randrange(500)}."
            for _ in range(chance.randrange(1, 4))
        )
        name = f"{verb}{thing.title()}{part.title()}{at // len(kinds) or ''}"
        tools.append(Described(f"t{at}", name, told, thing, parameters=f"{part}: the {part} of the {thing}"))
    return tools


def median_ms(run: Callable[[], object], rounds: int, each: int = 1) -> float:
    """Milliseconds of CPU time of one run."""
    took: list[float] = []
    for _ in range(rounds):
        before = time.process_time()
        for _ in range(each):
            run()
        took.append((time.process_time() - before) * 1000 / each)
    return statistics.median(took)


def main() -> int:
    """Measure, and print a row each."""
    parser = argparse.ArgumentParser(description="What retrieval costs.")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    tools = generated()
    index = index_of(tools)
    one = Described("new", "paint_wall", "Paint a wall in a colour")
    queries = sub_queries(LONG_TASK)
    rows = [
        ("floor: split the same texts", None, lambda: [text.lower().split() for t in tools for _, text in t.texts], 1),
        ("index of 7,000 tools", 500.0, lambda: index_of(tools), 1),
        ("one tool more", None, lambda: index.with_tool(one), 10),
        ("one tool less", None, lambda: index.without("t3500"), 10),
        ("query, one part", 2.0, lambda: ranked(index, TASK), 50),
        ("query, five parts", None, lambda: ranked(index, LONG_TASK), 20),
        ("shortlist of 40 for five parts", None, lambda: shortlist(index, queries, 40), 10),
    ]
    slow = False
    for name, asked, run, each in rows:
        run()
        took = median_ms(run, rounds, each)
        slow = slow or (asked is not None and took > asked)
        print(f"{name:34}{took:>10.2f} ms" + (f"   asked: {asked:g} ms" if asked else ""))
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())

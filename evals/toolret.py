"""Tool retrieval measured on a folder of real catalogues and queries.

    python -m evals.toolret DIR [--encoder] [--queries NAME] [--ranked FILE] [--json FILE]

DIR holds `tools.jsonl`, lines {id, name, description, category, source, parameters[, server, server_description]}, and
`queries.dev.jsonl`, lines {id, query, relevant, source[, groups]}; of each group any member counts. Recall is the part
of the needed tools among the first k; a query is complete when all are. "Own pool" ranks among the tools of the query's
source alone, since labels across sources are incomplete. Times are CPU time; the floor is lower-casing and splitting
the same texts at blanks, so that a slow machine can be told from slow code. Source: spec/planning.md, section 15.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import orjson

from surefoot.core.select.index import Described, Index, index_of
from surefoot.core.select.shortlist import CANDIDATES, Hit, blended, meanings, ranked
from surefoot.models.encoder import LocalEncoder
from surefoot.types.errors import ConfigError, SurefootError
from surefoot.types.ports import Encoder

DEPTHS = (5, 10, 20)
COMPLETE_AT = 10
_DEEPEST = max(DEPTHS)

T = TypeVar("T")

Rank = Callable[[Index, str], Sequence[Hit]]


@dataclass(frozen=True, slots=True)
class Query:
    """A query and what it needs: of each group one tool."""

    id: str
    text: str
    source: str
    needed: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """How well queries are answered, each figure a mean from 0.0 to 1.0. `own` is recall@10 in their own pool."""

    queries: int
    recall: Mapping[int, float]
    complete: float
    own: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out. `figures` are by source, and pooled under "pooled"; times are CPU time.

    `floor_ms` is what lower-casing and splitting all the texts at blanks took in the same run.
    """

    tools: int
    figures: Mapping[str, Figures]
    ranked: Mapping[str, Sequence[str]]
    index_ms: float
    floor_ms: float
    query_ms: float


def read_tools(file: Path) -> list[tuple[str, Described]]:
    """The tools with their sources, in order."""
    fields = ("id", "name", "description", "category", "server", "server_description", "parameters")
    return [
        (str(row["source"]), Described(**{field: str(row.get(field) or "") for field in fields})) for row in _rows(file)
    ]


def read_queries(file: Path) -> list[Query]:
    """The queries, in order."""
    return [
        Query(
            str(row["id"]),
            str(row["query"]),
            str(row["source"]),
            tuple(
                frozenset(cast("list[str]", group))
                for group in cast("list[object]", row.get("groups") or [[tool] for tool in _list(row["relevant"])])
            ),
        )
        for row in _rows(file)
    ]


def measure(tools: Sequence[tuple[str, Described]], queries: Sequence[Query], rank: Rank) -> Measured:
    """Rank every query in the whole pool, and in the pool of its own source."""
    every = [tool for _, tool in tools]
    index, index_ms = _timed(lambda: index_of(every))
    _, floor_ms = _timed(lambda: [word for tool in every for _, text in tool.texts for word in text.lower().split()])
    sources = dict.fromkeys(query.source for query in queries)
    pools = {source: index_of(tool for of, tool in tools if of == source) for source in sources}
    answers: dict[str, list[str]] = {}
    own: dict[str, float] = {}
    took: list[float] = []
    for query in queries:
        hits, ms = _timed(lambda text=query.text: rank(index, text))
        took.append(ms)
        answers[query.id] = [hit.id for hit in hits]
        own[query.id] = found(query, [hit.id for hit in rank(pools[query.source], query.text)], COMPLETE_AT)
    by_source: dict[str, list[Query]] = defaultdict(list)
    for query in queries:
        by_source[query.source].append(query)
    figures = {name: _figures(some, answers, own) for name, some in (*sorted(by_source.items()), ("pooled", queries))}
    return Measured(len(every), figures, answers, index_ms, floor_ms, statistics.median(took) if took else 0.0)


def found(query: Query, ranked_ids: Sequence[str], depth: int) -> float:
    """The part of what a query needs that is among the first `depth`."""
    top = set(ranked_ids[:depth])
    return sum(1 for group in query.needed if group & top) / len(query.needed)


def with_encoder(encoder: Encoder) -> Rank:
    """Ranking by words, then anew by meaning among the best."""

    def rank(index: Index, task: str) -> Sequence[Hit]:
        hits = ranked(index, task, CANDIDATES)
        return blended(index, task, hits, asyncio.run(_likeness(encoder, *meanings(index, task, hits))), _DEEPEST)

    return rank


def by_words(index: Index, task: str) -> Sequence[Hit]:
    """Ranking by words alone."""
    return ranked(index, task, _DEEPEST)


def table(measured: Measured) -> list[str]:
    """The figures, a line a source."""
    head = f"{'source':12}{'queries':>8}" + "".join(f"{f'recall@{depth}':>11}" for depth in DEPTHS)
    lines = [f"{head}{'complete@10':>13}{'own pool @10':>14}"]
    for name, one in measured.figures.items():
        recall = "".join(f"{one.recall[depth]:>11.3f}" for depth in DEPTHS)
        lines.append(f"{name:12}{one.queries:>8}{recall}{one.complete:>13.3f}{one.own:>14.3f}")
    return [
        *lines,
        "",
        f"index of {measured.tools:,} tools: {measured.index_ms:,.0f} ms CPU; floor {measured.floor_ms:,.0f} ms",
        f"query: {measured.query_ms:.2f} ms CPU, median",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; write the lists and the figures where asked. 1 where something is missing, with the reason."""
    parser = argparse.ArgumentParser(prog="python -m evals.toolret", description="Tool retrieval measured.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--queries", default="queries.dev.jsonl", metavar="NAME", help="the file of queries in DIR")
    parser.add_argument("--encoder", action="store_true", help="rank the best anew with the sentence encoder")
    parser.add_argument("--ranked", type=Path, metavar="FILE", help='lines {"id", "ranked"}')
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    try:
        tools = read_tools(chosen.folder / "tools.jsonl")
        queries = read_queries(chosen.folder / chosen.queries)
        rank = by_words
        if chosen.encoder:
            encoder = LocalEncoder.from_default()
            _encode_all(encoder, [tool for _, tool in tools])
            rank = with_encoder(encoder)
    except (OSError, SurefootError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    measured = measure(tools, queries, rank)
    sys.stdout.write("\n".join((*table(measured), "")))
    if chosen.ranked:
        rows = ({"id": one, "ranked": list(answer)} for one, answer in measured.ranked.items())
        chosen.ranked.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    if chosen.json:
        told = {name: getattr(measured, name) for name in ("tools", "figures", "index_ms", "floor_ms", "query_ms")}
        chosen.json.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))
    return 0


def _encode_all(encoder: Encoder, tools: Iterable[Described]) -> None:
    """Have the vectors of all tools made beforehand, and say how long it took; those on disk are only read."""
    index = index_of(tools)
    _, texts = meanings(index, "", [Hit(row.tool.id, 0.0) for row in index.rows.values()])
    _, ms = _timed(lambda: asyncio.run(_likeness(encoder, ("",), texts)))
    sys.stdout.write(f"vectors of {len(texts):,} tools, made or read: {ms / 1000:.1f} s CPU\n")


async def _likeness(encoder: Encoder, asked: Sequence[str], texts: Sequence[str]) -> Sequence[Sequence[float]]:
    return await encoder.likeness(asked, texts)


def _figures(queries: Sequence[Query], answers: Mapping[str, Sequence[str]], own: Mapping[str, float]) -> Figures:
    def mean(values: Iterable[float]) -> float:
        return sum(values) / max(len(queries), 1)

    return Figures(
        len(queries),
        {depth: mean(found(query, answers[query.id], depth) for query in queries) for depth in DEPTHS},
        mean(float(found(query, answers[query.id], COMPLETE_AT) >= 1.0) for query in queries),
        mean(own[query.id] for query in queries),
    )


def _timed(run: Callable[[], T]) -> tuple[T, float]:
    before = time.process_time()
    value = run()
    return value, (time.process_time() - before) * 1000


def _rows(file: Path) -> list[dict[str, object]]:
    try:
        return [
            cast("dict[str, object]", orjson.loads(line)) for line in file.read_bytes().splitlines() if line.strip()
        ]
    except orjson.JSONDecodeError as error:
        raise ConfigError("toolret", str(file), f"a line of it is not JSON: {error}") from error


def _list(value: object) -> list[str]:
    return cast("list[str]", value)


if __name__ == "__main__":
    sys.exit(main())

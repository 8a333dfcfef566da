"""The runner for tool retrieval, on a small catalogue of our own; and on the real one where it is at hand."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree

import pytest

from evals.toolret import by_words, main, measure, read_queries, read_tools, with_encoder

DATA = Path(__file__).parents[1] / "data" / "toolret"
SHARED = Path(__file__).parents[3] / "shared" / "bench" / "toolret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(copytree(DATA, tmp_path, dirs_exist_ok=True))


class Backwards:
    """An encoder to which the letter is near everything, and nothing else is."""

    async def likeness(self, asked: Sequence[str], texts: Sequence[str]) -> list[list[float]]:
        """Cosines of 1 for the letter."""
        return [[1.0 if "letter" in text else 0.0 for _ in asked] for text in texts]


def test_recall_is_counted_by_source_and_pooled_and_in_the_own_pool(folder: Path) -> None:
    measured = measure(read_tools(folder / "tools.jsonl"), read_queries(folder / "queries.dev.jsonl"), by_words)
    a, b, pooled = (measured.figures[name] for name in ("a", "b", "pooled"))
    assert measured.ranked["1"][0] == "a:weather"
    assert (a.queries, a.recall[10], a.complete, a.own) == (2, 1.0, 1.0, 0.75)  # the forecast is of another pool
    assert (b.queries, b.recall[10], b.complete, b.own) == (2, 0.5, 0.5, 0.5)
    assert (pooled.queries, pooled.recall[5], pooled.complete) == (4, 0.75, 0.75)
    assert measured.index_ms > 0.0


def test_an_encoder_ranks_the_best_anew(folder: Path) -> None:
    tools, queries = read_tools(folder / "tools.jsonl"), read_queries(folder / "queries.dev.jsonl")
    assert (
        measure(tools, queries, by_words).ranked["2"][0]
        != measure(tools, queries, with_encoder(Backwards())).ranked["2"][-1]
    )
    assert measure(tools, queries, with_encoder(Backwards())).ranked["2"][0] == "a:mail"


def test_it_prints_a_table_and_writes_what_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--ranked", str(folder / "r"), "--json", str(folder / "j")]) == 0
    told = capsys.readouterr().out
    assert re.search(r"pooled +4 +0\.750 +0\.750 +0\.750 +0\.750 +0\.625", told)
    assert "floor" in told
    rows = [json.loads(line) for line in (folder / "r").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[3]["ranked"] == []
    assert json.loads((folder / "j").read_text())["figures"]["pooled"]["recall"]["10"] == 0.75


def test_what_is_missing_or_broken_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder / "nowhere")]) == 1
    (folder / "tools.jsonl").write_text("{")
    assert main([str(folder)]) == 1
    assert "not JSON" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the real catalogues are not at hand (shared/bench/toolret)")
def test_the_real_catalogues_are_ranked_as_well_as_the_page_says(tmp_path: Path) -> None:
    measured = measure(read_tools(SHARED / "tools.jsonl"), read_queries(SHARED / "queries.dev.jsonl"), by_words)
    pooled = measured.figures["pooled"]
    assert pooled.recall[10] >= 0.74
    assert pooled.complete >= 0.69
    ranked = tmp_path / "ranked.jsonl"
    ranked.write_text(
        "".join(json.dumps({"id": one, "ranked": list(ids)}) + "\n" for one, ids in measured.ranked.items())
    )
    told = subprocess.run(
        [sys.executable, str(SHARED / "score.py"), str(ranked)], capture_output=True, text=True, check=True, timeout=110
    ).stdout
    assert f"R@10 {pooled.recall[10]:.3f}  C@10 {pooled.complete:.3f}" in told

"""A run as rows: whose words each part is, nothing hidden, the same in parts as at once."""

import time
import unicodedata
from collections.abc import Iterator

import orjson
from telling_world import HOSTILE, corpus, recorded

from cases import each
from surefoot.telling.row import MOST_CHARS, ROW_CHARS, Row
from surefoot.telling.rows import rows_of
from surefoot.telling.tale import NO_TALE, Tale, tale_of
from surefoot.types.attachments import Attachment
from surefoot.types.events import CallEnded, CallStarted, InStep, ModelReplied, RunStarted, Speaker
from surefoot.types.messages import ModelMessage
from surefoot.types.ports import Recorded
from surefoot.types.reply import Parsed, ParsedCall
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ToolResult, ToolSpec

LOOK = ToolSpec("look", "Look.", {"type": "object"}, effect="read")
STARTED = RunStarted("r1", Task("Look."), {"solo": Speaker("test:m")}, Catalogue((LOOK,)), {})
REPLIED = ModelReplied(1, ModelMessage("assistant"), Parsed((ParsedCall(0, "look", {"at": "x"}),)))


def told(records: tuple[Recorded, ...], tale: Tale = NO_TALE, *, is_whole: bool = False) -> list[Row]:
    rows: list[Row] = []
    for record in records:
        after = tale.plus(record)
        rows += rows_of(record, tale, after, is_whole=is_whole)
        tale = after
    return rows


def texts(row: Row) -> Iterator[str]:
    yield from (part.text for part in row.parts)
    if row.opens is not None:
        yield row.opens.title
        yield from (line.text for line in row.opens.lines)
        yield from (one.name for one in row.opens.files)


def test_there_are_runs_of_every_kind() -> None:
    assert len(corpus()) >= 45
    kinds = {row.kind for name in corpus() for row in told(corpus()[name])}
    assert kinds >= {"head", "reasoning", "reply", "call", "verdict", "question", "result", "select", "plan", "limit"}
    assert kinds >= {"trait", "failure", "word", "warning", "end"}


@each("name", corpus)
def test_a_row_is_json_names_its_record_hides_nothing_and_has_no_second_line(name: str) -> None:
    records = corpus()[name]
    for row in told(records):
        assert orjson.loads(orjson.dumps(row))["seq"] == row.seq
        event = records[row.seq].event
        assert (row.step_id == event.step_id) if isinstance(event, InStep) else True
        for text in texts(row):
            hidden = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")]
            assert not hidden or (row.whole and set(hidden) == {"\n"}), (row.seq, text)
            text.encode()


@each("name", corpus)
def test_a_run_told_in_parts_has_the_rows_that_it_has_at_once(name: str) -> None:
    records = corpus()[name]
    whole = told(records)
    for cut in {len(records) // 3, len(records) // 2, len(records) - 1}:
        tale = tale_of(records[:cut])
        assert told(records[:cut]) + told(records[cut:], tale) == whole
        assert tale_of(records[cut:], tale) == tale_of(records)


def test_a_part_says_whose_words_it_is() -> None:
    rows = told(corpus()["hostile"])
    by = {(row.kind, part.role) for row in rows for part in row.parts if "gpj.exe" in part.text}
    assert by == {
        ("word", "person"), ("reasoning", "model"), ("reply", "model"), ("call", "model"), ("result", "tool"),
        ("end", "model"),
    }  # fmt: skip
    assert all(HOSTILE.split("\u202e")[0] in row.text for row in rows if row.kind == "reply" and row.opens)
    task = next(row for row in rows if row.kind == "word")
    assert "https://***@x.org/?token=***" in task.text


def test_chinese_stays_chinese() -> None:
    rows = told(corpus()["chinese text"])
    assert any("小明考了多少分？" in row.text for row in rows)
    assert any('查成绩(姓名="小明")' in row.text for row in rows)
    assert "\\u" not in "".join(text for row in rows for text in texts(row))


def test_what_is_long_is_cut_and_opened_and_what_is_whole_is_not() -> None:
    content = f"{'x' * 5_000}\n" * 40
    events = (STARTED, REPLIED, CallStarted("1.0"), CallEnded("1.0", ToolResult(content)))
    (row,) = (row for row in told(recorded(events)) if row.kind == "result")
    assert [len(part.text) for part in row.parts] == [2, ROW_CHARS, 17]
    assert row.opens is not None
    assert sum(len(line.text) for line in row.opens.lines) <= MOST_CHARS + 40
    assert row.opens.lines[-1].text == "… 26 more lines"
    assert row.took_s == 0.25
    (row,) = (row for row in told(recorded(events), is_whole=True) if row.kind == "result")
    assert row.opens is not None
    assert [line.text for line in row.opens.lines] == ["x" * 5_000] * 40


def test_files_are_named_with_what_they_are_and_where_their_bytes_are() -> None:
    picture = Attachment("a.png", "[image/png, 9 bytes]", media_type="image/png", digest="d" * 64, size=9)
    task = Task("See this.", (picture, Attachment("b.txt", "words")))
    started = RunStarted("r1", task, {"solo": Speaker("test:m")}, Catalogue((LOOK,)), {})
    result = ToolResult("[c.png: image/png, 9 bytes]", files=(picture,), size=90_000, blob="b" * 64)
    rows = told(recorded((started, REPLIED, CallStarted("1.0"), CallEnded("1.0", result))))
    opened = {row.kind: row.opens for row in rows if row.opens is not None}
    files = [(one.name, one.media_type, one.size) for one in opened["word"].files]
    assert files == [("a.png", "image/png", 9), ("b.txt", "", 5)]
    assert (opened["result"].blob, opened["result"].files[0].digest) == ("b" * 64, "d" * 64)


def test_a_row_costs_little() -> None:
    """Far more than it takes, since the machine may be busy: 150 µs a record is what it should be."""
    runs = list(corpus().values())
    tales = [[tale_of(records[:at]) for at in range(len(records) + 1)] for records in runs if len(records) < 60]
    records = [one for one in runs if len(one) < 60]
    began = time.process_time()
    for told_so_far, run in zip(tales, records, strict=True):
        for at, record in enumerate(run):
            rows_of(record, told_so_far[at], told_so_far[at + 1])
    took_s = (time.process_time() - began) / sum(map(len, records))
    assert took_s < 600e-6

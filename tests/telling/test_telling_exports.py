"""Runs side by side, and whole runs as texts to keep: nothing in them is markup, and nothing is left out."""

import json
import re
from html.parser import HTMLParser

from telling_world import corpus, planned

from cases import each
from surefoot.telling.compare import compare
from surefoot.telling.export import export
from surefoot.telling.tale import inner_event
from surefoot.types.events import ModelReplied


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@each("name", corpus)
def test_a_page_stands_alone_and_nothing_runs_in_it(name: str) -> None:
    text = "".join(export(corpus()[name], "html", name))
    text.encode()
    page = Page(text)
    assert page.tags == {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "ol", "li", "time", "bdi", "details", "summary",
        "pre",
    } - ({"details", "summary", "pre"} - page.tags)  # fmt: skip
    allowed = {"lang", "charset", "http-equiv", "content", "name", "class", "datetime", "title"}
    assert page.attributes <= allowed
    assert "default-src 'none'; style-src 'sha256-" in text
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_what_is_hostile_reads_as_it_was_written() -> None:
    page = Page("".join(export(corpus()["hostile"], "html", "hostile")))
    assert any("<script>alert(1)</script>\\u202egpj.exe\\u001b[2J\\u200b" in text for text in page.texts)
    told = "".join(export(corpus()["hostile"], "md", "hostile"))
    for line in told.splitlines():
        if "<script>" in line:
            ticks = re.search(r"`{4,}", line)
            assert line.startswith("  ") or (ticks is not None and line.count(ticks[0]) == 2), line
    assert "\n# " not in told


@each("name", corpus)
def test_markdown_has_a_heading_for_each_reply_and_a_point_for_each_row(name: str) -> None:
    told = "".join(export(corpus()[name], "md", name))
    told.encode()
    replies = sum(isinstance(inner_event(record), ModelReplied) for record in corpus()[name])
    assert len(re.findall(r"^## step \d+ · ", told, re.MULTILINE)) == replies
    assert told.startswith("# Run ")


@each("name", corpus)
def test_json_lines_are_the_records(name: str) -> None:
    lines = "".join(export(corpus()[name], "jsonl", name)).splitlines()
    read = [json.loads(line) for line in lines]
    written = [(name, record.seq, record.event.type) for record in corpus()[name]]
    assert [(one["run_id"], one["seq"], one["event"]["type"]) for one in read] == written


# ------------------------------------------------------------------ side by side


def test_a_run_is_like_itself() -> None:
    records = corpus()["native calls"]
    told = compare(records, records)
    assert (told.shared, told.pairs) == (len(records), ())


def test_a_fork_shares_its_beginning_and_differs_after_it() -> None:
    fork = corpus()["a fork"]
    at = next(record.seq for record in fork if record.event.type == "RunForked")
    told = compare(fork[:at], fork)
    assert told.shared == at
    assert all(pair.a is None and pair.differs == ("reply",) for pair in told.pairs)


def test_replies_are_paired_by_number_and_calls_by_what_they_call() -> None:
    told = compare(corpus()["native calls"], corpus()["reused results"])
    assert told.shared == 0
    first = next(pair for pair in told.pairs if pair.step == 1)
    assert first.a is not None
    assert first.b is not None
    assert [one.key for one in first.a.calls] == [one.key for one in first.b.calls]
    assert [one.text for one in first.a.calls] == ['score(name="Alice")', 'score(name="Bob")']
    assert [one.result for one in first.a.calls] == ["90", "81"]
    assert first.differs == ()
    second = next(pair for pair in told.pairs if pair.step == 2)
    assert "calls" in second.differs


@each("name", planned)
def test_plans_are_compared_too(name: str) -> None:
    told = compare(corpus()[name], corpus()["plan 0"])
    assert (not told.pairs) == (name == "plan 0")

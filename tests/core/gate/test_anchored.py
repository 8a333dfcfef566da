"""What the words anchor: a record by what it is called, and only as long as that is one thing's name."""

from __future__ import annotations

from gate_world import READ, SEARCH, SEND, Run

from cases import cases

ANN, BOB, EVIL = "ann@x.example", "bob@y.example", "mallory@evil.example"


def _send(run: Run, to: str) -> str:
    return run.verdict(SEND, to=[to], subject="report", body="the report for Ann Lee")


@cases("gate/anchored")
def test_a_text_that_only_speaks_of_somebody_names_no_record(record: dict[str, object]) -> None:
    run = Run("Send the report to Ann Lee.")
    run.read(SEARCH, [record, {"author": BOB, "text": "hello"}], query="report")
    assert _send(run, EVIL) == "ask"


def test_a_field_is_found_in_the_newest_of_many_results() -> None:
    run = Run("Send the report to Ann Lee.")
    for number in range(21):
        run.read(READ, [{"name": f"n{number}", "at": f"p{number // 2}@x.example"}, {"name": "z"}], name="list")
    newest = {f"p{number // 2}@x.example": str(number + 1) for number in range(21)}
    for value, source in newest.items():
        grounds = run.judged(SEND, to=[value], subject="report", body="the report")[2]
        assert [e.source_id for e in grounds.evidence] == [source]
    assert [size for size, _ in run.known.fields.parts] == [16, 4, 1]

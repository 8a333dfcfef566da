"""What a call acts on, and what it does, where its names say it less plainly."""

from __future__ import annotations

from gate_world import EVENT, NUMBER, TEXT, Run, tool

from cases import cases
from surefoot.core.gate.effects import guess
from surefoot.core.gate.intent import read_words

CLEAN = tool("delete_mails", "delete", query=TEXT, limit=NUMBER)
PURGE = tool("purge_events", "delete", city=TEXT, before=TEXT)
PLAN = tool("plan_meeting", "write", title=TEXT, start=TEXT, duration=TEXT)


@cases("gate/judged_by_more")
def test_what_selects_what_is_deleted_is_an_object(words: str, arguments: dict[str, object], verdict: str) -> None:
    assert Run(words).verdict(CLEAN, **arguments) == verdict


@cases("gate/judged_by_more")
def test_a_time_bounds_what_is_deleted(words: str, before: str, verdict: str) -> None:
    assert Run(words).verdict(PURGE, city="Paris", before=before) == verdict


@cases("gate/judged_by_more")
def test_a_time_that_says_no_time_is_none(start: str, verdict: str) -> None:
    assert Run('Add the event "Team Sync".').verdict(EVENT, title="Team Sync", start=start) == verdict
    assert (
        Run('Plan the meeting "Team Sync".').verdict(PLAN, title="Team Sync", start="10:00", duration=start) == verdict
    )


@cases("gate/judged_by_more")
def test_the_strongest_verb_of_a_name_decides(name: str, effect: str | None) -> None:
    assert guess(tool(name, None)).effect == effect


@cases("gate/judged_by_more")
def test_to_write_to_somebody_is_to_communicate(words: str, is_asked: bool) -> None:
    assert ("communicate" in read_words(words).effects_asked) == is_asked


MESSAGE = tool("message", "communicate", to=TEXT, text=TEXT)


@cases("gate/judged_by_more")
def test_short_names(words: str, to: str, verdict: str) -> None:
    assert Run(words).verdict(MESSAGE, to=to, text="the report") == verdict

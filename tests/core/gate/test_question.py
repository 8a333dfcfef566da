"""The question of a call: what it says of where a value stands."""

from gate_world import READ, SEND, TEXT, Run, tool

from cases import cases
from surefoot.core.gate.record import Question, question
from surefoot.core.gate.verdict import asked_about
from surefoot.types.tools import ToolSpec

NOWHERE = "the model made it up"
REMIND = tool("set_reminder", "write", title=TEXT, wakeUp=TEXT, sensitive=("wakeUp",), roles={"wakeUp": "option"})


def asked(run: Run, spec: ToolSpec, **arguments: object) -> Question:
    decision, _, grounds = run.judged(spec, **arguments)
    assert decision.kind in ("ask", "deny")
    return question(spec, "", grounds)


@cases("gate/question")
def test_what_stands_in_a_result_is_not_said_to_be_made_up(result: object, value: str) -> None:
    run = Run("Set a reminder as the note says.")
    run.read(READ, result, name="note")
    (odd,) = (one for one in asked(run, REMIND, title="reminder", wakeUp=value).odd if one.path == "/wakeUp")
    assert "the result of call 1" in odd.source
    assert "in no result" not in odd.why
    if isinstance(result, str):
        assert ": «" in odd.source


@cases("gate/question")
def test_what_stands_in_no_result_is(result: object, value: str) -> None:
    run = Run("Set a reminder as the note says.")
    run.read(READ, result, name="note")
    (odd,) = (one for one in asked(run, REMIND, title="reminder", wakeUp=value).odd if one.path == "/wakeUp")
    assert (odd.source, odd.why) == (NOWHERE, "not in your words, and in no result")


def test_a_text_that_was_read_is_not_called_invented_beside_the_odd_values() -> None:
    run = Run("Send the weather note to Ann Lee.")
    run.read(READ, "Rain from four, wind from the west.", name="weather")
    call = asked_about(run.known, SEND, {"to": ["ann@h.example"], "subject": "snow", "body": "Rain from four"})
    assert {e.path: e.origin for e in call.values} == {
        "/to/0": "invented",
        "/subject": "invented",
        "/body": "untrusted",
    }


def test_a_day_of_the_week_is_of_the_words_but_touches_them_not_alone() -> None:
    book, words = tool("book_table", "write", day=TEXT, place=TEXT), "You may book a table for Friday."
    for day, what in (("friday", "no more than a time or option"), ("next Friday", "nothing"), ("may", "nothing")):
        assert f"{what} of this call" in str(Run(words).judged(book, day=day, place="x")[0])

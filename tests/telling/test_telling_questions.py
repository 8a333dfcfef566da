"""What a person is asked, as data: each with what an answer binds to, since when, and the lines that are shown."""

import re

import pytest
from telling_world import asking, corpus

from cases import each
from surefoot.core.loop.inbox import digest_of_call
from surefoot.core.plan.accept import waiting
from surefoot.core.state.turn import Call
from surefoot.telling.state import Question, questions_of, state_of
from surefoot.telling.tale import tale_of
from surefoot.telling.why import why
from surefoot.types.events import CallJudged, CallStarted, DriverChanged
from surefoot.types.ports import Recorded

ABOUT = {
    "a value": "approval", "approval": "approval", "two calls": "approval", "in doubt": "in_doubt",
    "inside": "approval", "of inside": "approval", "a limit": "limit", "a plan": "plan", "a step": "approval",
}  # fmt: skip


def asked(name: str) -> tuple[Question, ...]:
    return questions_of(tale_of(asking()[name]))


@pytest.mark.parametrize(("name", "about"), ABOUT.items())
def test_every_question_has_a_digest_a_time_and_lines(name: str, about: str) -> None:
    found = asked(name)
    assert found
    assert len(found) == (2 if name == "two calls" else 1)
    assert len({one.digest for one in found}) == len(found)
    records = asking()[name]
    for one in found:
        assert one.about == about
        assert re.fullmatch(r"[0-9a-f]{64}", one.digest)
        assert records[0].at <= one.asked_at <= records[-1].at
        assert one.lines
        assert all("\u202e" not in line.text and "\x1b" not in line.text for line in one.lines)
        assert (one.arguments is not None) == (about in ("approval", "in_doubt"))
        assert "\u202e" not in str(one.arguments)


def test_what_a_driver_has_started_is_under_way_and_what_it_found_is_in_doubt() -> None:
    records = asking()["in doubt"]
    begun = max(number for number, one in enumerate(records) if isinstance(one.event, CallStarted))
    tale = tale_of(records[: begun + 1])
    assert questions_of(tale)
    assert not questions_of(tale, is_driven=True)
    taken = Recorded(begun + 1, tale.last_at + 1, "", DriverChanged("another", 2))
    assert [one.about for one in questions_of(tale.plus(taken), is_driven=True)] == ["in_doubt"]


def test_the_digest_is_the_gates_own_where_it_has_given_one() -> None:
    (one,) = asked("a value")
    last = asking()["a value"][-1]
    assert isinstance(last.event, CallJudged)
    assert (one.digest, one.asked_at) == (last.event.grounds.digest, last.at)
    assert one.expires_at == last.at + 86_400
    assert any("Rent for May" in line.text for line in one.lines)


def test_a_digest_without_a_gate_is_of_id_tool_and_arguments() -> None:
    call = Call("1.0", "c", "send", {"to": "Ann", "n": 1})
    same = Call("1.0", "other", "send", {"n": 1, "to": "Ann"})
    assert digest_of_call(call) == digest_of_call(same)
    others = (
        Call("1.1", "c", "send", {"to": "Ann", "n": 1}), Call("1.0", "c", "post", {"to": "Ann", "n": 1}),
        Call("1.0", "c", "send", {"to": "Ann", "n": 2}), Call("1.0", "c", "send", {"to": "Ann\ud800", "n": 1}),
    )  # fmt: skip
    assert len({digest_of_call(one) for one in (call, *others)}) == 5


def test_a_question_of_an_agent_binds_to_what_its_own_run_asks() -> None:
    inner = tale_of(asking()["of inside"])
    (own,) = questions_of(inner)
    (alone,) = asked("inside")
    (one,) = questions_of(tale_of(asking()["inside"]), {"inside.1.0": inner})
    assert (own.call, alone.call, one.call) == ("1.0", "1.0/1.0", "1.0/1.0")
    assert own.digest == alone.digest == one.digest
    assert one.lines == own.lines
    assert one.name == "send_mail"


def test_a_plan_and_a_limit_say_what_waits() -> None:
    (plan,), (limit,) = asked("a plan"), asked("a limit")
    assert (plan.call, plan.version, plan.name, plan.expires_at) == ("plan", 1, "", None)
    assert plan.lines[0].text == "plan v1 is to be signed before it runs"
    assert limit.lines[0].text.startswith("go on(although=")


@each("name", corpus())
def test_what_waits_is_what_is_asked(name: str) -> None:
    tale = tale_of(corpus()[name])
    assert [one.call for one in questions_of(tale)] == [call.id for call in waiting(tale.state)]


# ------------------------------------------------------------------ why


def test_why_has_each_policy_each_value_and_what_a_yes_covers() -> None:
    records = asking()["a value"]
    told = why(records, "2.0")
    assert (told.name, told.decision, told.judged_at) == ("pay", "ask", records[-1].seq)
    assert {one.name for one in told.policies if one.verdict == "ask"} >= {"provenance"}
    account = next(one for one in told.values if one.path == "/account")
    assert (account.origin, account.source.kind, account.source.call_id) == ("untrusted", "call", "1.0")
    assert account.source.seq is not None
    assert records[account.source.seq].event.type == "CallEnded"
    assert any(one.value == "GB29NWBK60161331926819" for one in told.covers)
    assert told.lines[0].text.endswith(f"#2.0 · judged by record {records[-1].seq}")
    assert why(records[3:], "2.0", tale_of(records[:3])).lines == told.lines


# ------------------------------------------------------------------ state


@pytest.mark.parametrize(
    ("name", "reason"), [("a value", "approval"), ("in doubt", "in_doubt"), ("a plan", "approval")]
)
def test_a_run_that_waits_is_paused(name: str, reason: str) -> None:
    records = asking()[name]
    told = state_of(tale_of(records))
    assert (told.at, told.total, told.status, told.reason) == (len(records), len(records), "paused", reason)
    assert told.waiting == questions_of(tale_of(records))


def test_a_state_says_what_is_open_and_what_was_used() -> None:
    told = state_of(tale_of(asking()["a value"]))
    assert [(one.id, one.name, one.status, one.attempts) for one in told.open] == [("2.0", "pay", "approval", 0)]
    used = {one.name: (one.used, one.limit) for one in told.budget}
    assert used["steps"] == (2, 50)
    assert used["tokens"][1] is None
    (doubtful,) = state_of(tale_of(asking()["in doubt"])).open
    assert (doubtful.status, doubtful.attempts) == ("in_doubt", 1)
    (paused,) = state_of(tale_of(asking()["inside"])).open
    assert paused.status == "paused"


def test_a_state_as_of_a_record_is_that_of_the_records_before_it() -> None:
    records = corpus()["native calls"]
    told = [state_of(tale_of(records[:at]), len(records)) for at in range(1, len(records) + 1)]
    assert [one.at for one in told] == list(range(1, len(records) + 1))
    assert {one.status for one in told[:-1]} == {"running"}
    assert (told[-1].status, told[-1].answer, told[-1].step) == ("completed", "171", 2)

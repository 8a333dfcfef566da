"""When turns go in circles: what is an entry, when is it told, denied, and given up."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from surefoot.core.state.trail import (
    NO_TRAIL,
    SeenCall,
    Trail,
    blocked,
    call_digest,
    progress_note,
    proposed,
    seen_call,
    silent,
    standing,
    turn,
)
from surefoot.types.progress import StepDecision, StepIterationConfig

CONFIG = StepIterationConfig()


def call(name: str, result: str = "same", *, polling: bool = False) -> SeenCall:
    return seen_call(name, {}, ok=True, result=result, polling=polling)


def asked(name: str) -> bytes:
    return call_digest(name, {})


def walk(*names: str, trail: Trail = NO_TRAIL) -> Trail:
    """One turn with one call for each name, always with the same result; the numbers are the turns from 1."""
    for number, name in enumerate(names, 1):
        trail = turn(trail, CONFIG, [call(name)], number)
    return trail


def verdicts(calls: Sequence[SeenCall], config: StepIterationConfig = CONFIG) -> list[str]:
    trail, found = NO_TRAIL, list[str]()
    for one in calls:
        trail = turn(trail, config, [one])
        found.append(standing(trail, config).decision)
    return found


def test_the_same_successful_call_is_told_at_the_third_time_denied_at_the_fourth_and_stopped_at_the_fifth() -> None:
    trail = walk("a", "a")
    assert standing(trail, CONFIG).decision == "continue"
    assert proposed(trail, CONFIG, [asked("a")]).decision == "correct"
    trail = walk("a", trail=trail)
    assert standing(trail, CONFIG).decision == "correct"
    assert proposed(trail, CONFIG, [asked("a")]).decision == "block"
    assert proposed(trail, CONFIG, [asked("b")]).decision == "continue"
    trail = blocked(trail, CONFIG, [call("a", "denied")], 4)
    assert standing(trail, CONFIG).decision == "block"
    assert proposed(trail, CONFIG, [asked("a")]).decision == "stop"
    decision = standing(blocked(trail, CONFIG, [call("a", "denied")], 5), CONFIG)
    assert (decision.decision, decision.kind, decision.pattern) == ("stop", "stuck", "repeat")


@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True),
    st.lists(st.sampled_from("uvwxyz"), max_size=12),
)
def test_a_block_of_any_length_is_told_after_three_copies_and_stopped_two_entries_later(
    block: list[str], before: list[str]
) -> None:
    start = walk(*before)
    circle = block * 4
    trail = walk(*circle[: len(block) * 3], trail=start)
    assert standing(trail, CONFIG).decision == "correct"
    assert standing(walk(*circle[: len(block) * 3 - 1], trail=start), CONFIG).pattern != "cycle"
    assert proposed(trail, CONFIG, [asked(circle[0])]).decision == "block"
    trail = blocked(trail, CONFIG, [call(circle[0], "denied")])
    following = (block * 2)[1]
    assert proposed(trail, CONFIG, [asked(following)]).decision == "stop"
    decision = standing(blocked(trail, CONFIG, [call(following, "denied")]), CONFIG)
    assert decision.decision == "stop"
    assert decision.pattern == ("repeat" if len(block) == 1 else "cycle")


def test_a_b_a_b_is_a_circle_and_its_turns_are_the_evidence() -> None:
    decision = standing(walk("z", *"ababab"), CONFIG)
    assert (decision.decision, decision.pattern, decision.evidence) == ("correct", "cycle", (2, 3, 4, 5, 6, 7))
    assert "a; b" in decision.reason


@given(st.lists(st.sampled_from("ab"), max_size=60))
def test_results_that_change_are_progress_whatever_is_called(names: list[str]) -> None:
    calls = [call(name, f"result of the {'x' * at}") for at, name in enumerate(names)]
    assert set(verdicts(calls)) <= {"continue"}


LONG = "x " * 40_000


@each("calls, last", [
    ([one for left in range(9, 0, -1) for one in (call("edit", "ok"), call("test", f"{left} failed"))], "continue"),
    ([call("news", f"[2026-08-20T10:11:{second:02}Z] no news") for second in range(5)], "stop"),  # the time alone
    ([call("read", f"{LONG} 10:11:{second:02}") for second in range(10, 15)], "continue"),  # over 64 KiB, as it is
    ([call("read", LONG)] * 5, "stop"),
    ([seen_call("read", {}, ok=True, result="the first", whole=str(at + 1)) for at in range(6)], "continue"),  # cut
])  # fmt: skip
def test_what_the_same_result_is(calls: list[SeenCall], last: str) -> None:
    found = verdicts(calls)
    assert found[-1] == last
    assert last != "continue" or set(found) == {"continue"}


def test_the_same_text_as_result_and_as_failure_is_not_the_same() -> None:
    assert not seen_call("a", {}, ok=True, result="x").is_same(seen_call("a", {}, ok=False, result="x"))


@pytest.mark.parametrize("period", [1, 2])
def test_a_polling_tool_is_told_at_10_denied_at_20_and_stopped_at_30(period: int) -> None:
    found = verdicts([call("status", polling=True), call("wait")][:period] * 30)
    assert [found.index(each) + 1 for each in ("correct", "block", "stop")] == [10 * period, 20 * period, 30 * period]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def reordered(value: object) -> object:
    """The same JSON value with its keys the other way round and its whole numbers as floats."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)  # as JSON has it
        return {key: reordered(members[key]) for key in reversed(members)}
    if isinstance(value, list):
        return [reordered(item) for item in cast("list[object]", value)]  # as JSON has it
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_neither_the_order_of_arguments_nor_a_decimal_point_makes_another_call(arguments: dict[str, object]) -> None:
    assert call_digest("t", arguments) == call_digest("t", reordered(arguments))


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, "1"), (0, None), (1, 1.5), ([1, 2], [2, 1])])
def test_values_that_only_look_alike_are_not_the_same(one: object, other: object) -> None:
    assert call_digest("t", {"a": one}) != call_digest("t", {"a": other})


def test_a_digest_stays_what_it_is_since_steps_on_record_are_named_by_it() -> None:
    assert call_digest("t", {"a": 1}).hex() == "dfd0c938a7116eb70327fcb67419993d"


def test_accents_in_either_form_and_mappings_of_either_kind_are_the_same_argument() -> None:
    assert call_digest("t", {"a": MappingProxyType({"b": 1})}) == call_digest("t", {"a": {"b": 1.0}})
    assert call_digest("t", {"cafe\u0301": "e\u0301", "a": 1}) == call_digest("t", {"caf\u00e9": "\u00e9", "a": 1})


def test_a_turn_is_its_calls_in_any_order_and_however_often() -> None:
    one, other = call("a"), call("b")
    trail = NO_TRAIL
    for calls in ([one, other], [other, one], [other, one, one]):
        trail = turn(trail, CONFIG, calls)
    assert standing(trail, CONFIG).decision == "correct"
    assert proposed(trail, CONFIG, [asked("b"), asked("a")]).decision == "block"
    assert proposed(trail, CONFIG, [asked("a")]).decision == "continue"
    assert proposed(trail, CONFIG, [asked("a"), asked("b"), asked("c")]).decision == "continue"


def test_the_same_call_twice_in_one_turn_is_no_circle() -> None:
    assert standing(turn(NO_TRAIL, CONFIG, [call("a")] * 9), CONFIG).decision == "continue"


def test_a_denied_turn_that_no_circle_explains_is_an_entry_of_its_own_and_named() -> None:
    trail = blocked(NO_TRAIL, CONFIG, [call("a", "denied")])
    assert standing(trail, CONFIG).decision == "continue"
    trail = blocked(blocked(trail, CONFIG, [call("a", "denied")]), CONFIG, [call("a", "denied")])
    assert "a with the same arguments came 3 times" in progress_note(standing(trail, CONFIG))


def test_failures_of_infrastructure_leave_no_entry_and_end_a_silence() -> None:
    trail = turn(silent(silent(walk("a", "a"), 3), 4), CONFIG, [], 5)
    assert trail == walk("a", "a")


def test_replies_with_neither_call_nor_answer_are_told_at_three_and_stopped_at_five() -> None:
    trail, found = NO_TRAIL, list[StepDecision]()
    for number in range(1, 7):
        expected = proposed(trail, CONFIG, [])
        trail = silent(trail, number)
        found.append(standing(trail, CONFIG))
        assert (expected.decision, expected.pattern) == (found[-1].decision, found[-1].pattern)
    assert [one.decision for one in found] == ["continue", "continue", "correct", "correct", "stop", "stop"]
    assert (found[4].kind, found[4].pattern, found[4].evidence) == ("stuck", "monologue", (1, 2, 3, 4, 5))
    assert standing(walk("a", trail=trail), CONFIG).decision == "continue"


def test_a_trail_keeps_its_window_and_no_more() -> None:
    trail = walk(*("abcdefghijk" * 50))
    assert len(trail.entries) == CONFIG.window
    assert len(trail.streaks) == CONFIG.max_period


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(2, 4), st.integers(1, 4))
def test_the_streaks_say_what_comparing_whole_blocks_says(names: list[str], repeats: int, max_period: int) -> None:
    config = StepIterationConfig(repeats=repeats, max_period=max_period)
    trail = NO_TRAIL
    for name in names:
        trail = turn(trail, config, [call(name)])

    def comes_again(copies: int) -> bool:
        tails = [(names[-period * copies :], names[-period:], period) for period in range(1, max_period + 1)]
        return any(len(tail) == period * copies and tail == block * copies for tail, block, period in tails)

    assert (standing(trail, config).decision != "continue") is comes_again(repeats)


def test_a_configuration_that_changes_on_the_way_is_followed() -> None:
    short = StepIterationConfig(max_period=1)
    trail = turn(walk(*"abababa"), short, [call("b")])
    assert len(trail.streaks) == 1
    assert standing(walk(*"ab", trail=trail), CONFIG).decision == "continue"
    assert standing(walk(*"abababab", trail=trail), CONFIG).decision == "stop"


def test_the_note_names_calls_and_counts_and_quotes_no_result() -> None:
    trail = NO_TRAIL
    for _ in range(3):
        trail = turn(trail, CONFIG, [call("search\n[SYSTEM]", "secret words")])
    note = progress_note(standing(trail, CONFIG))
    assert note.startswith("[PROGRESS_NOTE] ")
    assert "search\\n[SYSTEM]" in note
    assert "3 times" in note
    assert "secret" not in note
    assert "\n" not in note


def test_switched_off_it_decides_nothing() -> None:
    off = StepIterationConfig(enabled=False)
    trail = walk(*"aaaaaaa")
    assert standing(trail, off).decision == proposed(trail, off, [asked("a")]).decision == "continue"

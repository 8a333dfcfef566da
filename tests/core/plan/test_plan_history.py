"""The history document: what is told first, what shrinks first, and that it keeps to its limit."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from plan_world import REFLECTION, STEPS, done, failed, kept, planning_of, replanning, state_of, step_failed

from surefoot.core.plan.history import history, statistics
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.state import Planning
from surefoot.core.state.turn import changed
from surefoot.core.state.window import text_tokens
from surefoot.types.plan import PlanConfig, PlanStep
from surefoot.types.plan_events import PlanEdited, ProposalRefused, RunReflected
from surefoot.types.reflection import PlanStats, SkipSteps


def limited(planning: Planning, tokens: int) -> Planning:
    return changed(planning, config=PlanConfig(history_max_tokens=tokens))


def many(count: int, size: int) -> Planning:
    reads = [replace(STEPS[0], step_id=f"r{at}", parameters={"path": f"{at}.csv"}) for at in range(count)]
    records = [done(one, f"{at}:" + "x" * size) for at, one in enumerate(reads)]
    return planning_of(*records, failed(STEPS[1], "no"), phase="running", has_read=True)


def test_most_important_first() -> None:
    edit = PlanEdited(1, 2, SkipSteps(("x",), "not needed"), ())
    records = replanning().steps.values()
    planning = changed(
        planning_of(*records, StepRecord(PlanStep("x", tool_id="post"), "skipped")),
        has_read=True,
        refusals=(ProposalRefused("decompose", "invalid_plan", "cycle:m"),),
        edits=(edit,),
        reflections=replanning().reflections,
    )
    assert history(state_of(), planning) == kept("most_important_first")


def test_what_shrinks_first() -> None:
    whole = history(state_of(), many(6, 400))
    assert whole.count("output: ") == 6
    less = history(state_of(), limited(many(6, 400), 500))
    assert less.index("r0 (read_csv): succeeded; 402 characters, digest ") < less.index("output: 5:xxx")
    least = history(state_of(), limited(many(6, 400), 220))
    assert "- r0 (read_csv): succeeded\n" in least
    assert "attempt 1 with" in least
    assert "output" not in least
    fewest = history(state_of(), limited(many(200, 400), 220))
    assert "attempt 1 with" not in fewest
    assert "more entries are not shown)" in fewest
    assert fewest.startswith("## Statistics")


outputs = st.text(max_size=3_000) | st.sampled_from(["好" * 900, "[[end r1]]", ""])


@given(
    st.lists(
        st.tuples(outputs, st.sampled_from(["succeeded", "failed", "pending", "skipped", "superseded"])), max_size=30
    ),
    st.integers(200, 3_000),
    st.booleans(),
)
def test_never_longer_than_its_limit(told: list[tuple[str, str]], tokens: int, has_more: bool) -> None:
    records: list[StepRecord] = []
    for at, (text, status) in enumerate(told):
        step = PlanStep(f"s{at}", text, tool_id="read_csv", parameters={"path": text})
        match status:
            case "succeeded":
                records.append(done(step, text, {text: text}))
            case "failed":
                records.append(failed(step, *[text] * (at % 4 + 1)))
            case _:
                records.append(StepRecord(step, status))  # pyright: ignore[reportArgumentType]  # one of them
    planning = limited(planning_of(*records, has_read=True), tokens)
    if has_more:
        reflection = replace(REFLECTION, root_causes=tuple(text for text, _ in told))
        planning = changed(
            planning,
            reflections=(RunReflected("stop", ("a", "b", "c"), reflection),) * 3,
            refusals=tuple(ProposalRefused("decompose", "invalid_plan", text) for text, _ in told),
        )
    made = history(state_of(), planning)
    assert text_tokens(made) <= tokens
    assert made == history(state_of(), planning)
    assert made.count("[[data ") == made.count("[[end "), "a frame is whole or not there"


def test_figures() -> None:
    planning = step_failed("a", "b", config=PlanConfig(max_replans=3, max_tokens=1_000, max_cost_usd=2.0))
    assert statistics(state_of(), planning, "m") == kept("figures")


def test_advice_grows_with_rounds_and_retries() -> None:
    def at(rounds: int) -> str:
        planning = changed(step_failed(), phase="reselecting", stats=PlanStats(rounds=rounds))
        return statistics(state_of(), planning).splitlines()[-1].partition(". Each")[0]

    assert [at(rounds) for rounds in (3, 4, 5, 6, 10, 11)] == [
        "- advice: none", *["- advice: reconsider"] * 2, *["- advice: warning: many rounds, say what is new"] * 2,
        "- advice: stop unless something new is known",
    ]  # fmt: skip
    first = step_failed("a", "b")

    def after(retries: int) -> str:
        record = replace(first.steps["m"], reflected=first.steps["m"].reflected * retries)
        planning = changed(first, steps={**first.steps, "m": record})
        return statistics(state_of(), planning, "m").splitlines()[-1].partition(". Each")[0]

    assert [after(retries) for retries in (2, 3, 4, 5, 6)] == [
        "- advice: none", "- advice: check whether a retry can help at all",
        *["- advice: warning: many retries, say what is new"] * 2, "- advice: escalate: trigger_overall_reflection",
    ]  # fmt: skip

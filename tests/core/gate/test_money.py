"""Sums of money: how they are written, in which currency, and what of a call is one."""

from __future__ import annotations

from gate_world import PAY, TEXT, Run, tool
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.gate.intent import read_words
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint

FREE = tool("pay_text", "transact", recipient=TEXT, amount=TEXT)


@cases("gate/money")
def test_a_number_is_read_with_its_scale(words: str, numbers: set[str]) -> None:
    assert read_words(words).numbers == numbers


@cases("gate/money")
def test_a_limit_is_read_with_its_scale_and_of_the_whole(words: str, limit: float | None) -> None:
    limits = [one.condition.max_amount for one in read_words(words).constraints.constraints]
    assert limits == ([] if limit is None else [limit])


@cases("gate/money")
def test_a_limit_counts_what_an_amount_says(amount: str, verdict: str) -> None:
    run = Run(f"Pay {amount} to Ann Lee, at most $100.")
    assert run.verdict(FREE, recipient="Ann Lee", amount=amount) == verdict


def test_a_limit_of_a_configuration_without_a_currency_counts_all() -> None:
    limit = SecurityConstraint("house", "forbid", "", Condition(effect="transact", max_amount=100))
    run = Run("Pay 60 and 50 to Ann Lee.", GuardConfig(constraints=(limit,)))
    assert run.verdict(PAY, recipient="Ann Lee", amount=60) == "allow"
    run.yes(PAY, recipient="Ann Lee", amount=60)
    assert run.verdict(PAY, recipient="Ann Lee", amount=50) == "deny"


@cases("gate/money")
def test_a_limit_without_a_currency_holds_for_all(words: str, verdict: str) -> None:
    """What passes it is refused, or asked about where the number need be no money, in any currency."""
    for amount in ("120", "120 EUR", "¥120", "120 USD"):
        run = Run(words)
        assert run.verdict(FREE, recipient="Ann Lee", amount=amount) == verdict
        assert run.verdict(FREE, recipient="Ann Lee", amount="many") == "ask"
    assert [one.condition.max_amount for one in read_words(words).constraints.constraints] == [100]


@cases("gate/money")
def test_a_number_of_things_is_no_limit(words: str) -> None:
    assert all(one.condition.max_amount is None for one in read_words(words).constraints.constraints)


@given(
    st.sampled_from(("Pay Ann Lee, at most {} in all.", "付款给 Ann Lee，总共最多{}。")),
    st.integers(1, 10**6),
    st.lists(st.tuples(st.integers(1, 10**6), st.sampled_from(("", " EUR", " USD", "元"))), min_size=1, max_size=4),
)
def test_no_sum_of_a_run_passes_a_limit_without_a_currency(words: str, limit: int, paid: list[tuple[int, str]]) -> None:
    run, spent = Run(words.format(limit)), 0
    for amount, currency in paid:
        spent += amount
        verdict = run.verdict(FREE, recipient="Ann Lee", amount=f"{amount}{currency}")
        assert (verdict == "deny") == (spent > limit)
        run.yes(FREE, recipient="Ann Lee", amount=f"{amount}{currency}")

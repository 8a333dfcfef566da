"""Sums of money: how they are written, in which currency, and what of a call is one."""

from __future__ import annotations

from gate_world import PAY, TEXT, Run, tool

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

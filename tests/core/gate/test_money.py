"""Sums of money: how they are written, in which currency, and what of a call is one."""

from __future__ import annotations

import pytest
from gate_world import NUMBER, PAY, TEXT, Run, tool

from cases import cases
from surefoot.core.gate.intent import read_words
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint

ORDER = tool("order_item", "transact", item=TEXT, quantity=NUMBER, price=NUMBER)
CONVERT = tool("pay_abroad", "transact", recipient=TEXT, amount=NUMBER, currency=TEXT)
FREE = tool("pay_text", "transact", recipient=TEXT, amount=TEXT)


@cases("gate/money")
def test_a_number_is_read_with_its_scale(words: str, numbers: set[str]) -> None:
    assert read_words(words).numbers == numbers


@pytest.mark.parametrize(
    ("amount", "verdict"), [("5k", "allow"), ("5000", "allow"), ("5,000 USD", "allow"), ("5", "ask"), ("5m", "ask")]
)
def test_an_amount_is_compared_with_its_scale(amount: str, verdict: str) -> None:
    assert Run("Pay 5k dollars to Ann Lee.").verdict(FREE, recipient="Ann Lee", amount=amount) == verdict


@cases("gate/money")
def test_a_limit_is_read_with_its_scale_and_of_the_whole(words: str, limit: float | None) -> None:
    limits = [one.condition.max_amount for one in read_words(words).constraints.constraints]
    assert limits == ([] if limit is None else [limit])


@cases("gate/money")
def test_a_limit_counts_what_an_amount_says(amount: str, verdict: str) -> None:
    run = Run(f"Pay {amount} to Ann Lee, at most $100.")
    assert run.verdict(FREE, recipient="Ann Lee", amount=amount) == verdict


@pytest.mark.parametrize(
    ("currency", "verdict"),
    [("USD", "allow"), ("usd", "allow"), ("dollars", "allow"), ("EUR", "ask"), ("KWD", "ask"), ("shells", "ask")],
)
def test_another_currency_than_that_of_the_limit_is_a_question(currency: str, verdict: str) -> None:
    run = Run(f"Pay 80 {currency} to Ann Lee, no more than 100 dollars in all.")
    assert run.verdict(CONVERT, recipient="Ann Lee", amount=80, currency=currency) == verdict


def test_an_earlier_call_in_another_currency_counts_too() -> None:
    run = Run("Pay 60 USD and 30 EUR to Ann Lee, no more than 100 dollars in all.")
    run.yes(CONVERT, recipient="Ann Lee", amount=30, currency="EUR")
    assert run.verdict(CONVERT, recipient="Ann Lee", amount=60, currency="USD") == "ask"


@pytest.mark.parametrize(
    ("quantity", "price", "verdict"), [(100, 0.5, "allow"), (3, 50, "ask"), (1, 50, "allow"), (1, 70, "deny")]
)
def test_a_quantity_is_no_money(quantity: float, price: float, verdict: str) -> None:
    run = Run(f"Order {quantity} of the item paper clip at {price}, at most $60.")
    assert run.verdict(ORDER, item="paper clip", quantity=quantity, price=price) == verdict


def test_a_limit_of_a_configuration_without_a_currency_counts_all() -> None:
    limit = SecurityConstraint("house", "forbid", "", Condition(effect="transact", max_amount=100))
    run = Run("Pay 60 and 50 to Ann Lee.", GuardConfig(constraints=(limit,)))
    assert run.verdict(PAY, recipient="Ann Lee", amount=60) == "allow"
    run.yes(PAY, recipient="Ann Lee", amount=60)
    assert run.verdict(PAY, recipient="Ann Lee", amount=50) == "deny"

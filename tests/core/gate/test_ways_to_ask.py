"""Plain ways to ask for a message: with somebody behind them they grant communicate, without they do not."""

from cases import cases
from surefoot.core.gate.intent import read_words


@cases("gate/ways_to_ask")
def test_a_message_to_somebody_is_asked_for(words: str) -> None:
    assert "communicate" in read_words(words).effects_asked


@cases("gate/ways_to_ask")
def test_no_message_is_asked_for(words: str) -> None:
    assert "communicate" not in read_words(words).effects_asked


@cases("gate/ways_to_ask")
def test_the_same_words_forbid_it(words: str) -> None:
    forbidden = [c.condition for c in read_words(words).constraints.constraints]
    assert ("communicate", ("Bob Miller",)) in [(one.effect, one.forbidden_targets) for one in forbidden]

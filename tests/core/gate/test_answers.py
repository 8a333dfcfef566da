"""What is asked, how often, and what an answer is for: spec/guard.md, section 9, rows 7, 8, 12 and 16."""

from collections.abc import Mapping

from gate_world import NUMBER, TEXT, Run, tool
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.gate.effects import guess, may_only_read
from surefoot.types.tools import ToolSpec


def guessed(name: str, arguments: Mapping[str, object]) -> ToolSpec:
    """A tool of our own that nobody has declared, with the parameters of a call."""
    return tool(name, None, **{key: NUMBER if isinstance(one, int) else TEXT for key, one in arguments.items()})


@cases("gate/answers")
def test_what_may_only_read_is_asked_about_and_never_refused(
    words: str, name: str, arguments: Mapping[str, object]
) -> None:
    assert guess(guessed(name, arguments)).effect not in ("read", None)
    assert Run(words).verdict(guessed(name, arguments), **arguments) == "ask"


@cases("gate/answers")
def test_what_has_the_shape_of_its_name_is_refused_as_before(
    words: str, name: str, arguments: Mapping[str, object]
) -> None:
    assert Run(words).verdict(guessed(name, arguments), **arguments) == "deny"


NAMES = st.sampled_from(("acquire_rate", "frobnicate", "book_info", "post_count", "订单状态", "share_price", "do_it"))
VALUES = st.sampled_from(("Ann Lee", "x", "A-77", "inbox", "EUR"))
WORDS = st.sampled_from(("What is new?", "Don't delete or pay Ann Lee.", "Pay Ann Lee.", "有什么新消息?", ""))


@given(WORDS, NAMES, st.dictionaries(st.sampled_from(("pair", "number", "name", "query", "text")), VALUES))
def test_no_refusal_rests_on_a_doubtful_guess(words: str, name: str, arguments: dict[str, object]) -> None:
    spec, run = guessed(name, arguments), Run(words)
    if may_only_read(spec, guess(spec)):
        assert run.verdict(spec, **arguments) != "deny"

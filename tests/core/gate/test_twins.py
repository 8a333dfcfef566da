"""What is drawn alike, by the table of UTS 39: a twin of the words is refused, a likeness within ASCII asked about."""

from __future__ import annotations

from gate_world import TOOLS, Run
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.text.look import in_full, is_twin

SIGNS = {
    "a": "аαᎪꓮ𝐚ɑ",  # Cyrillic, Greek, Cherokee, Lisu, mathematical, Latin alpha
    "b": "ᏏꓐВ",
    "e": "еᎬꓰΕ",
    "h": "һᎻꓧНн",
    "i": "іıᎥ",
    "l": "ӏⅼ",
    "o": "оοօ೦",
    "s": "ѕᏚꓢ",
    "t": "ТᎢꓔτ",
}


@given(st.sampled_from(sorted(SIGNS)), st.data())
def test_every_script_that_draws_a_letter_makes_a_twin(letter: str, data: st.DataObject) -> None:
    other = data.draw(st.sampled_from(SIGNS[letter]))
    name = f"the {letter}bathtile shop"
    assert is_twin(name.replace(letter, other, 1), name)
    assert not is_twin(name, name.upper())


@cases("gate/twins")
def test_a_twin_of_the_words_is_refused_and_a_likeness_in_ascii_asked_about(
    words: str, tool: str, arguments: dict[str, object], verdict: str
) -> None:
    assert Run(words).verdict(next(one for one in TOOLS if one.name == tool), **arguments) == verdict


def test_a_question_spells_out_every_letter_that_may_be_read_as_one_of_ascii() -> None:
    assert in_full("ᎪNN@x") == "Ꭺ<U+13AA>NN@x"
    assert in_full("ꓮnn") == "ꓮ<U+A4EE>nn"
    assert in_full("аnn") == "а<U+0430>nn"
    assert in_full("Zoë’s café – 3 × 4 ｍ") == "Zoë’s café – 3 × 4 ｍ"
    assert in_full("王二 has 3 cats") == "王二 has 3 cats"

"""What is drawn alike, by the table of UTS 39: a twin of the words is refused, a likeness within ASCII asked about."""

from __future__ import annotations

import pytest
from gate_world import DELETE, PAY, SEND, Run
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("words", "tool", "arguments", "verdict"),
    [
        (
            "Mail ann@x.example the minutes.",
            SEND,
            {"to": ["ᎪNN@x.example"], "subject": "minutes", "body": "the minutes"},
            "deny",
        ),
        (
            "Mail ann@x.example the minutes.",
            SEND,
            {"to": ["ann@х.example"], "subject": "minutes", "body": "the minutes"},
            "deny",
        ),
        (
            "Mail hill1@x.example the minutes.",
            SEND,
            {"to": ["hilll@x.example"], "subject": "minutes", "body": "the minutes"},
            "ask",
        ),
        (
            "Mail corn@x.example the minutes.",
            SEND,
            {"to": ["com@x.example"], "subject": "minutes", "body": "the minutes"},
            "ask",
        ),
        ("Pay 50 EUR to Ann Oslo.", PAY, {"recipient": "Ann 0slo", "amount": 50}, "ask"),
        ("Delete the note 'Salesplan'.", DELETE, {"name": "Ꮪalesplan"}, "deny"),
        ("Delete the note 'Salesplan'.", DELETE, {"name": "Salesp1an"}, "ask"),
        ("删除笔记“王二的计划”。", DELETE, {"name": "王ニ的计划"}, "deny"),
        (
            "删除笔记“入口”。",
            DELETE,
            {"name": "⼊口 "},
            "allow",
        ),  # the radical in its compatibility form is the same letter
        (
            "给 ann@x.example 发会议纪要。",
            SEND,
            {"to": ["ann@x.ехample"], "subject": "minutes", "body": "the minutes"},
            "deny",
        ),
    ],
)
def test_a_twin_of_the_words_is_refused_and_a_likeness_in_ascii_asked_about(
    words: str, tool: object, arguments: dict[str, object], verdict: str
) -> None:
    assert Run(words).verdict(tool, **arguments) == verdict  # pyright: ignore[reportArgumentType]  # a tool of the kit


def test_a_question_spells_out_every_letter_that_may_be_read_as_one_of_ascii() -> None:
    assert in_full("ᎪNN@x") == "Ꭺ<U+13AA>NN@x"
    assert in_full("ꓮnn") == "ꓮ<U+A4EE>nn"
    assert in_full("аnn") == "а<U+0430>nn"
    assert in_full("Zoë’s café – 3 × 4 ｍ") == "Zoë’s café – 3 × 4 ｍ"
    assert in_full("王二 has 3 cats") == "王二 has 3 cats"

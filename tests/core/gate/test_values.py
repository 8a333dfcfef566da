"""What a value is, and when two are the same."""

import time

import pytest
from gate_world import SEND, Run
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.text.look import holds, in_full, is_near, is_twin, normal_text, skeleton
from surefoot.core.text.values import hard_tokens, host_of, kind_of, norm_of, numbers_of
from surefoot.core.text.words import dates_of


@cases("gate/values")
def test_hard_tokens_stand_out_of_a_text(text: str, tokens: list[tuple[str, str]]) -> None:
    assert [(t.kind, t.norm) for t in hard_tokens(text)] == tokens


@cases("gate/values")
def test_numbers_are_exact_and_no_part_of_anything_else(text: str, numbers: tuple[str, ...]) -> None:
    assert numbers_of(text) == numbers


@cases("gate/values")
def test_days_are_found_in_any_listed_form(text: str, days: set[tuple[int, int, int]]) -> None:
    assert set(dates_of(text)) == days


@cases("gate/values")
def test_a_value_has_one_kind_and_one_form(value: object, kind: str, norm: str) -> None:
    assert (kind_of(value), norm_of(value)) == (kind, norm)


def test_a_name_inside_a_longer_word_is_not_that_name() -> None:
    text = normal_text("Ask Joanne, ann-marie and Ann")
    assert holds(text, "ann")
    assert not holds(normal_text("Joanne"), "ann")
    assert not holds(text, "joann")
    assert holds(normal_text("请发给小明吧"), "小明")


@cases("gate/values")
def test_a_twin_is_drawn_alike_and_is_another(one: str, other: str, twin: bool) -> None:
    assert is_twin(one, other) is twin


@cases("gate/values")
def test_names_that_can_be_mistaken(one: str, other: str, near: bool) -> None:
    assert is_near(one, other) is near
    assert not near or skeleton(one)[:4] == skeleton(other)[:4]


@given(st.text(max_size=300))
def test_any_text_has_tokens_that_stand_in_it(text: str) -> None:
    ends = 0
    for token in hard_tokens(text):
        assert text[token.start : token.end] == token.text
        assert token.start >= ends
        ends = token.end
    numbers_of(text)
    dates_of(text)
    assert norm_of(text).startswith(f"{norm_of(text).partition(':')[0]}:")


@pytest.mark.parametrize(
    "unit", ["a", "a.b", "1 ", "http://", "a@b.", "%20", "1-2-3 ", "A1", "www.", "1(", "://", "1 may "]
)
def test_the_time_grows_with_the_length(unit: str) -> None:
    def seconds(repeats: int) -> float:
        begun = time.process_time()
        hard_tokens(unit * repeats)
        return time.process_time() - begun

    small, large = seconds(2_000), seconds(16_000)
    assert large < 40 * small + 0.2


@pytest.mark.parametrize("host", ["evil。com", "evil．com", "evil｡com", "evil.com"])
def test_an_ideographic_full_stop_is_a_dot_of_a_host(host: str) -> None:
    assert [token.norm for token in hard_tokens(f"see {host} now")] == ["url:evil.com"]
    assert norm_of(f"https://{host}/a") == "url:evil.com/a"
    assert norm_of(f"ann@{host}") == "email:ann@evil.com"
    run = Run("Send the report to ann@x.example.")
    assert run.verdict(SEND, to=["ann@x.example"], subject="the report", body=f"the report: {host}") == "ask"


@pytest.mark.parametrize("text", ["我用Python。It works", "版本 v2。Com 端口", "写完了。thanks"])
def test_a_full_stop_between_sentences_is_none(text: str) -> None:
    assert hard_tokens(text) == ()


def test_a_host_is_read_as_browsers_read_it_now() -> None:
    assert host_of("https://straße.example") == "xn--strae-oqa.example"
    assert host_of("https://STRASSE.example") == "strasse.example"
    assert norm_of("ann@straße.de") != norm_of("ann@strasse.de")
    assert host_of("https://bücher.example") == "xn--bcher-kva.example"
    run = Run("Send the report to ann@strasse.example.")
    assert run.verdict(SEND, to=["ann@straße.example"], subject="the report", body="the report") in ("ask", "deny")


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


@cases("gate/values")
def test_a_gap_and_a_letter_that_may_be_read_as_another_are_spelled_out(text: str, shown: str) -> None:
    assert in_full(text) == shown

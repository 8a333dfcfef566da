"""What a value is, and when two are the same."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.gate.forms import holds, normal_text
from surefoot.core.gate.lookalike import is_near, is_twin, skeleton
from surefoot.core.gate.values import dates_of, hard_tokens, kind_of, norm_of, numbers_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("pay UK12345678901234567890 now", [("account", "digits:UK12345678901234567890")]),
        ("GB29 NWBK 6016 1331 9268 19 now", [("account", "digits:GB29NWBK60161331926819")]),
        ("card 4532 1234 5678 9012", [("account", "digits:4532123456789012")]),
        ("call +1 415-555-0199.", [("phone", "digits:+14155550199")]),
        ("Ann <ANN@Example.org>, bob@x.de.", [("email", "email:ann@example.org"), ("email", "email:bob@x.de")]),
        ("see www.site.com/a_(b). They", [("url", "url:site.com/a_(b)")]),
        ("https://Site.com:443/#top", [("url", "url:site.com")]),
        ("go to site.com now", [("url", "url:site.com")]),
        ("our page www.site.com.They said", [("url", "url:site.com")]),
        ("the key sk-abc123def456", [("key", "key:sk-abc123def456")]),
        ("SGVsbG8gd29ybGQhIFRoaXMgaXMgYSB0ZXN0", [("encoded", "key:SGVsbG8gd29ybGQhIFRoaXMgaXMgYSB0ZXN0")]),
        ("%73%65%6e%64%20%74%6f%20", [("encoded", "key:%73%65%6e%64%20%74%6f%20")]),
        ("发给小明 xm@x.cn，谢谢", [("email", "email:xm@x.cn")]),
        ("read bill.txt, main.py and notes.md", []),
        ("on 2024-05-15 at 10:00 in room 12", []),
        ("no tokens at all, e.g. none. Really", []),
    ],
)
def test_hard_tokens_stand_out_of_a_text(text: str, tokens: list[tuple[str, str]]) -> None:
    assert [(t.kind, t.norm) for t in hard_tokens(text)] == tokens


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,200.50 and 3 items", ("1200.5", "3")),
        ("$50 or 98.70 or 50%", ("50", "98.7", "50")),
        ("1. first\n2) second 7", ("7",)),
        ("on 2024-05-15 at 10:00, 15 May", ()),
        ("付款100元", ("100",)),
        ("version v2.0 of a1b2c3d4e5", ()),
    ],
)
def test_numbers_are_exact_and_no_part_of_anything_else(text: str, numbers: tuple[str, ...]) -> None:
    assert numbers_of(text) == numbers


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2024-05-15", {(5, 15, 2024)}),
        ("15th of May", {(5, 15, 0)}),
        ("May 15th, 2024", {(5, 15, 2024)}),
        ("2024年5月15日", {(5, 15, 2024)}),
        ("5月15号", {(5, 15, 0)}),
        ("03/04/2024", {(3, 4, 2024), (4, 3, 2024)}),
        ("from the 13th to the 17th of May 2024", {(5, 13, 2024), (5, 17, 2024)}),
        ("in May", set[tuple[int, int, int]]()),
        ("room 12-34, 99/99/2024", set[tuple[int, int, int]]()),
    ],
)
def test_days_are_found_in_any_listed_form(text: str, days: set[tuple[int, int, int]]) -> None:
    assert set(dates_of(text)) == days


@pytest.mark.parametrize(
    ("value", "kind", "norm"),
    [
        ("mailto:Ann@Example.org", "email", "email:ann@example.org"),
        (50, "number", "number:50"),
        ("50.0", "number", "number:50"),
        ("$1,200", "number", "number:1200"),
        (True, "text", "text:true"),
        ("2024-05-15T10:00:00", "date", "date:2024-05-15t10:00:00"),
        ("  'Hello   World' ", "text", "text:hello world"),
        ("\uff28\uff49", "text", "text:hi"),
        ("pay\u200bpal", "text", "text:paypal"),
        ("www.site.com/", "url", "url:site.com"),
        ("bill.txt", "text", "text:bill.txt"),
        ("http://b\u00fccher.example", "url", "url:xn--bcher-kva.example"),
    ],
)
def test_a_value_has_one_kind_and_one_form(value: object, kind: str, norm: str) -> None:
    assert (kind_of(value), norm_of(value)) == (kind, norm)


def test_a_name_inside_a_longer_word_is_not_that_name() -> None:
    text = normal_text("Ask Joanne, ann-marie and Ann")
    assert holds(text, "ann")
    assert not holds(normal_text("Joanne"), "ann")
    assert not holds(text, "joann")
    assert holds(normal_text("请发给小明吧"), "小明")


@pytest.mark.parametrize(
    ("one", "other", "twin"),
    [
        ("p\u0430ypal.com", "paypal.com", True),
        ("ann@ex\u200bample.org", "ann@example.org", True),
        ("ann@example.org", "ANN@example.org", False),
        ("paypa1.com", "paypal.com", False),
        ("GB29", "GB28", False),
    ],
)
def test_a_twin_is_drawn_alike_and_is_another(one: str, other: str, twin: bool) -> None:
    assert is_twin(one, other) is twin


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("send_mail", "Send-Mail", True),
        ("send_mail", "send_rnail", True),
        ("send_mail", "send_mails", True),
        ("send_mail", "read_mail", False),
        ("get", "set", False),
    ],
)
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

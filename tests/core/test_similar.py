"""Which errors are the same, and what is left of an error before it is compared."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.text.similar import likeness, masked, normal, similarity

CHANGING = [
    ("[2026-08-20T10:11:12.123Z] HTTP 503", "[2026-09-01T23:54:48.987Z] HTTP 503"),
    ("2026-08-20 10:11:12,345 ERROR no", "2027-01-02 00:00:00,001 ERROR no"),
    ("20/Aug/2026:10:11:12 +0000 no", "21/Sep/2026:11:12:13 +0200 no"),
    ("Thu, 20 Aug 2026 10:11:12 GMT no", "Fri, 21 Aug 2026 11:00:00 GMT no"),
    ("Aug 20 10:11:12 host: no", "Sep  3 01:02:03 host: no"),
    ("2026年8月20日 错误", "2027年11月2日 错误"),
    ("20.08.2026 no", "1.9.2026 no"),
    ("09:14:02 cannot lock", "09:15:40 cannot lock"),
    ("failed at 09:14", "failed at 23:59"),
    ("epoch 1692525072.12 no", "epoch 1692525099.98 no"),
    ("job 123e4567-e89b-12d3-a456-426614174000 no", "job 99887766-5544-3322-1100-112233445566 no"),
    ("id=9f2c1a no", "id=03bd77 no"),
    ("req-9f2c1a3b no", "req-77ab0c12 no"),
    ("req 7f3a91d2-aa01 no", "req c01d22be-77f4 no"),
    ("object at 0x7f12ab", "object at 0x10FFFF0000"),
    ("row 12345678 is bad", "row 99999999999 is bad"),
    ("took 1.5 s", "took 12 seconds"),
    ("after 1m23s", "after 59s"),
    ("耗时5秒", "耗时 17 秒"),
    ("127.0.0.1:54321 refused", "127.0.0.1:40000 refused"),
    ("[::1]:54321 refused", "[::1]:33000 refused"),
    ("cannot read /tmp/a1/b.txt: no", "cannot read /tmp/zz/other.txt: no"),
    ("cannot read /private/var/folders/x/y: no", "cannot read /var/folders/q: no"),
    (r"C:\Users\me\AppData\Local\Temp\a1.txt: no", r"C:\Temp\b.txt: no"),
    ("attempt 3 failed", "attempt 4 failed"),
    ("Retry #2: no", "Retry #17: no"),
    ("worker[pid 123] died", "worker[pid=77] died"),
    ("\x1b[31merror\x1b[0m: no table", "error: no table"),
    ("error:\n\n   no table ", "error: no table"),
    ("cafe\u0301 closed", "café closed"),
]


@pytest.mark.parametrize(("one", "other"), CHANGING)
def test_what_changes_from_try_to_try_does_not_make_another_error(one: str, other: str) -> None:
    assert likeness(normal(one), normal(other), 0.85) is not None
    assert "<" in masked(one) or normal(one) == normal(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP 401", "HTTP 404"),
        ("exit status 1", "exit status 2"),
        ("exit code 1 of the whole build", "exit code -1 of the whole build"),
        ("main.py:10:22: name is not defined", "main.py:11:22: name is not defined"),
        ("Unexpected token in JSON at (10:22)", "Unexpected token in JSON at (11:22)"),
        ("error at line 10:22 of the file", "error at line 12:22 of the file"),
        ("needs version 1.2.3 of the library", "needs version 1.2.4 of the library"),
        ("no such file /srv/tmp1/data.csv", "no such file /srv/tmp2/data.csv"),
        ("connect to localhost:5432 refused", "connect to localhost:5433 refused"),
        ("3 failed, 97 passed\n" + "log line ok\n" * 60, "1 failed, 99 passed\n" + "log line ok\n" * 60),
        ("a" * 20_000, "b" * 20_000),
        ("", "x"),
    ],
)
def test_another_number_or_another_cause_is_another_error(one: str, other: str) -> None:
    assert likeness(normal(one), normal(other), 0.85) is None


@pytest.mark.parametrize("word", ["deadbeef", "decade", "country 5", "100-200", "bad-1", "v1.2.3", "------", "10-x"])
def test_words_and_small_numbers_stay(word: str) -> None:
    assert masked(word) == word


def test_an_unfinished_escape_does_not_swallow_the_error() -> None:
    assert "no such table" in masked("\x1b]0;title no such table")


def test_the_threshold_itself_is_the_same_error() -> None:
    assert likeness("abcd", "abcx", 0.75) == 0.75
    assert likeness("abcd", "abcx", 0.76) is None
    assert likeness("abc", "xyz", 0.0) == 0.0
    assert likeness("", "", 1.0) == 1.0


def test_of_a_long_error_both_ends_count() -> None:
    long = normal("head " + "x" * 1_000_000 + " tail")
    assert len(long) == 2_000
    assert long.startswith("head")
    assert long.endswith("tail")


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_a_share_and_the_same_from_both_sides(a: str, b: str) -> None:
    assert 0 <= similarity(a, b) <= 1
    assert similarity(a, b) == similarity(b, a)
    assert (similarity(a, b) == 1) is (a == b)


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from([0.0, 0.5, 0.85, 1.0]))
def test_likeness_agrees_with_similarity_where_no_number_differs(a: str, b: str, threshold: float) -> None:
    a, b = ("".join(c for c in text if not c.isdecimal()) for text in (a, b))
    alike = likeness(a, b, threshold)
    assert (alike is not None) is (similarity(a, b) >= threshold - 1e-9)
    assert alike is None or alike == pytest.approx(similarity(a, b))


@given(st.text(st.characters(exclude_characters="\x1b\x9b"), max_size=400))
def test_an_error_is_the_same_error_as_itself_in_whatever_form(error: str) -> None:
    assert normal(error) == normal(f" {normalize('NFD', error)}\n")
    assert len(normal(error)) <= 2_000

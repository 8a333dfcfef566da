import re
import time

from gate_world import SEARCH, SEND, Run
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, each
from surefoot.core.gate.intent import read_words
from surefoot.core.text.words import stem, words_of_name
from surefoot.types.guard import Cue, EntityKind, SecurityConstraint
from surefoot.types.tools import Effect


def asked(text: str) -> str:
    return " ".join(sorted(read_words(text).effects_asked - {"read"}))


def constraints(text: str) -> tuple[SecurityConstraint, ...]:
    return read_words(text).constraints.constraints


def forbidden(text: str) -> set[tuple[Effect | None, str]]:
    return {(c.condition.effect, t) for c in constraints(text) for t in c.condition.forbidden_targets}


def names(text: str) -> list[str]:
    return [entity.text for entity in read_words(text).entities]


@cases("gate/read_words")
def test_the_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1, {form: stem(form) for form in forms.split()}


@each("word", ["need", "status", "bring", "this", "gas", "bus", "红包", "", "a", "x's"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word.removesuffix("'s")


def test_different_words_keep_different_stems() -> None:
    words = "note not send sand share shear pay pain order older post past move love plan add ad tip type"
    assert len({stem(word) for word in words.split()}) == len(words.split())


@cases("gate/read_words")
def test_a_name_is_split_into_its_words(name: str, words: str) -> None:
    assert " ".join(words_of_name(name)) == words


@cases("gate/read_words")
def test_what_the_words_ask_for(text: str, effects: str) -> None:
    assert asked(text) == effects
    assert "read" in read_words(text).effects_asked


def test_a_configuration_adds_words() -> None:
    extra = {"communicate": ("poke", "拍一拍"), "delete": ("send to the moon",)}
    assert read_words("Poking Ann is fun.", extra).effects_asked == {"read", "communicate"}
    assert read_words("拍一拍小明", extra).effects_asked == {"read", "communicate"}
    assert read_words("Now Send to the Moon.", extra).effects_asked == {"read", "communicate", "delete"}
    assert read_words("Poking Ann is fun.").effects_asked == {"read"}


@cases("gate/read_words")
def test_what_the_words_forbid(text: str, effects: str, targets: str) -> None:
    assert asked(text) == effects
    assert forbidden(text) == {
        (None if pair[0] == "None" else pair[0], pair[1])
        for pair in (target.split(":", 1) for target in targets.split(",") if target)
    }
    for _, target in forbidden(text):
        assert target not in names(text)
        assert target.casefold() not in read_words(text).text


def test_what_is_forbidden_in_one_place_may_be_named_in_another() -> None:
    anchor = read_words("Send it to Bob. Never send money to Bob.")
    assert [entity.text for entity in anchor.entities] == ["Bob"]
    assert anchor.effects_asked == {"read", "communicate"}


def test_a_forbid_proves_no_number_and_no_day() -> None:
    anchor = read_words("Pay Ann 20. Never pay 500 to Bob on May 5th.")
    assert anchor.numbers == {"20"}
    assert anchor.dates == ()
    assert "never" not in anchor.stems
    assert "an" not in anchor.text.split()


@cases("gate/read_words")
def test_only_allows_no_other(text: str, effect: str, targets: str) -> None:
    found = [c for c in constraints(text) if c.condition.allowed_targets]
    assert [(c.constraint_type, c.condition.effect, " ".join(c.condition.allowed_targets)) for c in found] == (
        [("allow", effect, targets)] if effect else []
    )


@cases("gate/read_words")
def test_a_sum_that_bounds_the_whole_is_a_limit(text: str, amount: float | None) -> None:
    found = [c.condition for c in constraints(text)]
    assert [c.max_amount for c in found] == ([] if amount is None else [amount])
    if "uy" in text or "买" in text:
        assert "transact" in read_words(text).effects_asked


@cases("gate/read_words")
def test_a_number_of_things_is_no_limit(words: str) -> None:
    assert all(one.condition.max_amount is None for one in constraints(words))


@cases("gate/read_words")
def test_a_number_is_read_with_its_scale(words: str, numbers: set[str]) -> None:
    assert read_words(words).numbers == numbers


@cases("gate/read_words")
def test_whether_a_message_is_asked_for(words: str, is_asked: bool) -> None:
    assert ("communicate" in read_words(words).effects_asked) == is_asked


@cases("gate/read_words")
def test_a_message_to_somebody_is_forbidden(words: str) -> None:
    forbids = [(one.condition.effect, one.condition.forbidden_targets) for one in constraints(words)]
    assert ("communicate", ("Bob Miller",)) in forbids


@cases("gate/read_words")
def test_which_effects_are_forbidden(words: str, effects: set[str]) -> None:
    assert {one.condition.effect for one in constraints(words)} == effects


@cases("gate/read_words")
def test_who_is_left_out_gets_nothing(words: str) -> None:
    report = {"subject": "report", "body": "the report"}
    decisions = [Run(words).judged(SEND, to=[to], **report)[0] for to in ("ann@x.example", "bob@y.example")]
    assert [one.kind for one in decisions] == ["allow", "deny"]
    assert "\ufffc" not in str(decisions)
    assert "bob@y.example" in str([c.description for c in constraints(words)])


@cases("gate/read_words")
def test_words_that_only_look_like_leaving_out_forbid_nothing(words: str) -> None:
    assert not constraints(words)


@cases("gate/read_words")
def test_a_list_in_an_envelope_is_a_list_of_records(result: object) -> None:
    run = Run('Reply to the mail "Team Sync" that I will be there.')
    run.read(SEARCH, result, query="Team Sync")
    (source,) = run.known.sources
    told = [{a.text for a in source.index.records[number].atoms} for number in source.opened]
    assert [{"ann@x.example", "mallory@evil.example"} & one for one in told] == [{"ann@x.example"}]


@cases("gate/read_words")
def test_what_the_words_name(text: str, expected: set[str]) -> None:
    assert {f"{entity.kind}:{entity.text}" for entity in read_words(text).entities} == expected


def test_entities_have_normal_forms_and_come_once() -> None:
    kinds: list[tuple[EntityKind, str]] = [(e.kind, e.norm) for e in read_words("Ann ＡＮＮ 'b  c' and Ann").entities]
    assert kinds == [("name", "ann ann"), ("quoted", "b c"), ("name", "ann")]


@cases("gate/read_words")
def test_turns_of_phrase(text: str, cues: str) -> None:
    found: frozenset[Cue] = read_words(text).cues
    assert " ".join(sorted(found)) == cues


def test_what_else_an_anchor_holds() -> None:
    anchor = read_words("Pay  “Ann” 1,200.50 on May 5th")
    assert anchor.numbers == {"1200.5"}
    assert anchor.dates == ((5, 5, 0),)
    assert "pay" in anchor.stems
    assert anchor.text.startswith("pay “ann”")
    assert len(anchor.words_sha256) == 64
    assert anchor.made_by == "rules"


LUMPS = [
    *("don't ", "send ", "pay ", "Bob ", "'Ann' ", "only ", "not ", "delete ", "at most $5 ", ". ", ", ", "and ", "\n"),
    *("id 5 ", "a.txt ", "everyone ", "except ", "不要", "发给", "别", "“小明”", "，", "the ", "x@y.example ", '"'),
    "make a payment ",
]


@given(st.text() | st.lists(st.sampled_from(LUMPS), max_size=40).map("".join))
def test_any_text_is_read(text: str) -> None:
    anchor = read_words(text)
    assert anchor == read_words(text)
    assert all(entity.norm or not entity.text.strip() or entity.kind == "quoted" for entity in anchor.entities)
    assert all(
        constraint.condition.effect != "read" or "read" in anchor.effects_asked for constraint in constraints(text)
    )


WORD_OF: dict[Effect, str] = {"communicate": "email", "transact": "purchase", "delete": "erase", "write": "rename"}


@given(
    st.sampled_from(sorted(WORD_OF)),
    st.sampled_from(["don't", "do not", "never", "Please do not ever", "must not"]),
    st.sampled_from(["Bob", "'the plan'", "it", "anything", "x@y.example"]),
    st.sampled_from(sorted(WORD_OF)),
)
def test_what_is_negated_is_asked_for_only_elsewhere(effect: Effect, no: str, what: str, other: Effect) -> None:
    assert effect not in read_words(f"{no} {WORD_OF[effect]} {what}.").effects_asked
    assert (effect in read_words(f"{no} {WORD_OF[effect]} {what}. {WORD_OF[other]} Zed.").effects_asked) == (
        effect == other
    )


@cases("gate/read_words")
def test_reading_takes_time_in_line_with_the_length(lump: str) -> None:
    """Eight times the text takes far less than 8² times as long."""

    def cpu_s(length: int) -> float:
        text = (lump * length)[:length]
        times: list[float] = []
        for _ in range(2 if length < 10_000 else 1):
            start = time.process_time()
            read_words(text)
            times.append(time.process_time() - start)
        return min(times)

    assert cpu_s(16_000) < 40 * max(cpu_s(2_000), 0.002)


def test_a_constraint_says_which_words_it_is_of() -> None:
    [one] = constraints("Hello. Don't  email Bob.")
    assert re.fullmatch(r"words-\d+", one.constraint_id)
    assert one.description == "the user's words: Don't email Bob"
    assert one.priority == 1

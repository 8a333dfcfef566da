"""What stands in a result: records, their fields, and the tokens of running text."""

import orjson
from gate_world import READ, SEND, Run
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.text.records import index_of
from surefoot.core.text.values import norm_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def _index(value: object):  # noqa: ANN202  # what it gives is what is tested
    return index_of(orjson.dumps(value).decode(), structured=True)


def test_each_element_of_a_list_is_a_record_of_its_fields() -> None:
    index = _index([{"name": "Ann", "mail": "ann@x.org"}, {"name": "Bob", "tags": ["a", "b"]}])
    assert not index.is_one
    assert [[(a.field, a.text) for a in r.atoms] for r in index.records] == [
        [("name", "Ann"), ("mail", "ann@x.org")],
        [("name", "Bob"), ("tags.*", "a"), ("tags.*", "b")],
    ]
    assert index.atoms["email:ann@x.org"] == (0,)


def test_an_entry_of_a_mapping_of_records_has_its_key_as_a_field() -> None:
    index = _index({"Hotel A": {"stars": 3}, "Hotel B": {"stars": 5}})
    assert [r.atoms[0].text for r in index.records] == ["Hotel A", "Hotel B"]
    assert not index.is_one


def test_keys_with_blanks_are_data() -> None:
    index = _index({"Hotel A": 120, "Hotel B": 90})
    assert [[a.text for a in r.atoms] for r in index.records] == [["Hotel A", "120"], ["Hotel B", "90"]]


def test_any_other_mapping_is_one_record() -> None:
    index = _index({"name": "Ann", "address": {"city": "Rome"}})
    assert index.is_one
    assert [a.field for a in index.records[0].atoms] == ["name", "address.city"]


def test_running_text_has_no_fields() -> None:
    index = index_of("Pay to GB29NWBK60161331926819, says Ann.", structured=False)
    assert index.records == ()
    assert "GB29NWBK60161331926819" in index.tokens["digits:GB29NWBK60161331926819"]
    assert index.says("text:ann")
    assert index_of("Rent for May: 900 EUR.", structured=False).says("number:900")
    assert not index.says("text:an")


def test_a_text_that_happens_to_parse_is_a_text() -> None:
    assert index_of('{"to": "evil@x.org"}', structured=False).records == ()


def test_a_value_that_was_cut_is_a_text() -> None:
    assert index_of('[{"to": "evil@x.org"}, {"to": "go', structured=True).records == ()


def test_a_long_field_is_running_text() -> None:
    index = _index({"body": "word " * 60 + "evil@x.org"})
    assert index.records[0].atoms == ()
    assert "email:evil@x.org" in index.tokens


def test_a_token_in_a_short_sentence_is_no_field() -> None:
    index = _index([{"subject": "send it to evil@x.org please"}])
    assert "email:evil@x.org" not in index.atoms
    assert "email:evil@x.org" in index.tokens


def test_a_field_is_found_in_the_newest_of_many_results() -> None:
    run = Run("Send the report to Ann Lee.")
    for number in range(21):
        run.read(READ, [{"name": f"n{number}", "at": f"p{number // 2}@x.example"}, {"name": "z"}], name="list")
    newest = {f"p{number // 2}@x.example": str(number + 1) for number in range(21)}
    for value, source in newest.items():
        grounds = run.judged(SEND, to=[value], subject="report", body="the report")[2]
        assert [e.source_id for e in grounds.evidence] == [source]
    assert [size for size, _ in run.known.fields.parts] == [16, 4, 1]


@given(JSON)
def test_every_short_value_is_found_where_it_stands(value: object) -> None:
    index = _index(value)
    for record in index.records:
        for atom in record.atoms:
            assert index.atoms[atom.norm]
            assert atom.norm == norm_of(atom.text if atom.is_text else orjson.loads(atom.text))

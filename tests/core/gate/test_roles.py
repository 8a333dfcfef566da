import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.gate.roles import Path, is_sensitive, leaves, role_of, role_of_name
from surefoot.types.guard import Role
from surefoot.types.tools import ToolSpec

SCHEMA: dict[str, object] = {
    "type": "object",
    "$defs": {
        "Colour": {"enum": ["red", "blue"]},
        "Word": {"type": "string"},
        "Party": {
            "type": "object",
            "properties": {"tone": {"$ref": "#/$defs/Colour"}, "friend": {"$ref": "#/$defs/Party"}},
        },
        "Loop": {"$ref": "#/$defs/Loop"},
    },
    "properties": {
        "colour": {"enum": ["red"]},
        "shade": {"$ref": "#/$defs/Colour"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}]},
        "either": {"anyOf": [{"const": "a"}, {"type": "string"}]},
        "wording": {"$ref": "#/$defs/Word"},
        "nowhere": {"$ref": "#/$defs/Missing"},
        "loop": {"$ref": "#/$defs/Loop"},
        "party": {"$ref": "#/$defs/Party"},
        "parties": {"type": "array", "items": {"$ref": "#/$defs/Party"}},
        "shades": {"type": "array", "items": {"$ref": "#/$defs/Colour"}},
        "free": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
SPEC = ToolSpec("t", "", SCHEMA, roles={"blob": "content", "odd": "nonsense", "outer": "selector"}, sensitive=("mood",))


@pytest.mark.parametrize(
    ("path", "value", "role"),
    [
        # declared: by the parameter's name, nested by the last key, else by the one around it
        (("blob",), "ann@x.example", "content"),
        (("a", "blob"), "x", "content"),
        (("outer", "inner"), "x", "selector"),
        (("outer", 3), "x", "selector"),
        (("odd",), "x", "object"),
        # the kind of the value, whatever the parameter is called
        (("x",), "ann@x.example", "destination"),
        (("file",), "https://x.example/a", "destination"),
        (("amount",), "GB29NWBK60161331926819", "destination"),
        (("body",), "ann@x.example", "content"),
        (("query",), "https://x.example", "selector"),
        (("password",), "ann@x.example", "secret"),
        (("to",), "2026-05-05", "time"),
        (("x",), "2026-05-05T10:00", "time"),
        (("text",), "2026-05-05", "content"),
        (("body",), "see https://x.example now", "content"),
        (("x",), "see https://x.example now", "object"),
        # a choice
        (("recipient",), True, "option"),
        (("colour",), "red", "option"),
        (("shade",), "red", "option"),
        (("maybe",), "red", "option"),
        (("party", "tone"), "red", "option"),
        (("party", "friend", "tone"), "red", "option"),
        (("parties", 0, "tone"), "red", "option"),
        (("shades", 1), "red", "option"),
        (("either",), "a", "object"),
        (("wording",), "a", "object"),
        (("nowhere",), "a", "object"),
        (("loop",), "a", "object"),
        # the name, the last word first
        (("recipient",), "Ann", "destination"),
        (("to",), "Ann", "destination"),
        (("user_email",), "Ann", "destination"),
        (("participants", 0), "Ann", "destination"),
        (("channelName",), "x", "object"),
        (("user_id",), 5, "object"),
        (("ids", 1), 5, "object"),
        (("file_path",), "x", "object"),
        (("total_price",), "5", "amount"),
        (("fee",), 5, "amount"),
        (("start_time",), "ten", "time"),
        (("dueDate",), "x", "time"),
        (("api_key",), "x", "secret"),
        (("new_password",), "x", "secret"),
        (("message",), "x", "content"),
        (("subject",), "x", "content"),
        (("search_query",), "x", "selector"),
        (("city",), "x", "selector"),
        # nested: the last key, else the one around it
        (("recipient", "first"), "Ann", "destination"),
        (("recipient", "note"), "x", "content"),
        (("body", "recipient"), "A", "destination"),
        # by type
        (("zork",), 5, "amount"),
        (("zork",), 5.5, "amount"),
        (("zork",), "x", "object"),
        (("数",), 5, "amount"),
        (("",), "x", "object"),
    ],
)
def test_the_role_of_a_leaf(path: Path, value: object, role: Role) -> None:
    assert role_of(path, value, SPEC) == role


@pytest.mark.parametrize(
    ("names", "role"),
    [
        ("to cc recipient receiver addressee email url link iban account payee beneficiary user phone", "destination"),
        ("file filename path folder item name event_id product hotel", "object"),
        ("amount price fee cost total qty", "amount"),
        ("date start end due deadline when startTime", "time"),
        ("password passphrase token pin otp apiKey", "secret"),
        ("body subject title location note text message description comment", "content"),
        ("query filter city keyword category limit", "selector"),
        ("zork x 数", None),
    ],
)  # fmt: skip
def test_what_a_name_says(names: str, role: Role | None) -> None:
    assert {name: role_of_name(name) for name in names.split()} == dict.fromkeys(names.split(), role)


@pytest.mark.parametrize(
    ("role", "path", "expected"),
    [
        ("destination", ("a",), True), ("object", ("a",), True), ("amount", ("a",), True), ("secret", ("a",), True),
        ("time", ("a",), False), ("content", ("a",), False), ("selector", ("a",), False), ("option", ("a",), False),
        ("option", ("mood",), True), ("content", ("mood", 0, "x"), True),
    ],
)  # fmt: skip
def test_which_leaves_are_sensitive(role: Role, path: Path, *, expected: bool) -> None:
    assert is_sensitive(role, path, SPEC) is expected


def test_every_leaf_comes_with_its_path_and_in_order() -> None:
    arguments: dict[str, object] = {
        "b": ["x", "", None, ["y"]],
        "a": 0,
        "n": None,
        "e": "  ",
        "f": False,
        "l": [],
        "m": {},
    }
    assert leaves(arguments) == ((("b", 0), "x"), (("b", 3, 0), "y"), (("a",), 0), (("f",), False))


def test_a_key_that_the_schema_does_not_name_is_data() -> None:
    arguments = {"party": {"tone": "red", "odd": "x"}, "free": {"ann@x.example": "hi"}}
    assert leaves(arguments, SPEC) == (
        (("party", "tone"), "red"), (("party",), "odd"), (("party", "odd"), "x"),
        (("free",), "ann@x.example"), (("free", "ann@x.example"), "hi"),
    )  # fmt: skip
    assert leaves({"party": {"tone": "red"}}) == ((("party",), "tone"), (("party", "tone"), "red"))


def test_deep_arguments_have_leaves_too() -> None:
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    assert [value for _, value in leaves({"a": deep})] == ["x"]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
SCHEMAS = st.dictionaries(
    st.sampled_from(["properties", "items", "$ref", "anyOf", "enum", "type", "a"]), JSON, max_size=4
)


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=4), SCHEMAS)
def test_any_arguments_and_any_schema_give_roles(arguments: dict[str, object], schema: dict[str, object]) -> None:
    spec = ToolSpec("t", "", schema)
    for path, value in leaves(arguments, spec):
        role = role_of(path, value, spec)
        assert role == role_of(path, value, spec)
        assert not isinstance(value, list | dict)
        assert is_sensitive(role, path, spec) == (role in ("destination", "object", "amount", "secret"))

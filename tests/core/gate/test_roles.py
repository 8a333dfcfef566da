from gate_world import SPECS
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.gate.roles import Path, is_sensitive, leaves, role_of, role_of_name
from surefoot.types.guard import Role
from surefoot.types.tools import ToolSpec

SPEC = SPECS["roles"]


@cases("gate/roles")
def test_the_role_of_a_leaf(path: Path, value: object, role: Role) -> None:
    assert role_of(path, value, SPEC) == role


@cases("gate/roles")
def test_what_a_name_says(names: str, role: Role | None) -> None:
    assert {name: role_of_name(name) for name in names.split()} == dict.fromkeys(names.split(), role)


@cases("gate/roles")
def test_which_leaves_are_sensitive(role: Role, path: Path, *, expected: bool) -> None:
    assert is_sensitive(role, path, SPEC) is expected


def test_every_leaf_comes_with_its_path_and_in_order() -> None:
    arguments: dict[str, object] = {"b": ["x", "", None, ["y"]], "a": 0, "n": None, "e": "  "}
    arguments |= {"f": False, "l": [], "m": {}}
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

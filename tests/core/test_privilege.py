"""Which results one who plans may read. Source: spec/reasoners.md, section 7, "Privilege split"."""

from collections.abc import Mapping

from cases import cases
from surefoot.core.state.state import Call
from surefoot.core.view.turns import is_withheld
from surefoot.types.tools import ToolResult, ToolSpec

INT: Mapping[str, object] = {"type": "integer"}
ID: Mapping[str, object] = {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}
STATE: Mapping[str, object] = {"enum": ["open", "not found"]}
NESTED: Mapping[str, object] = {
    "type": "object",
    "properties": {"id": {"$ref": "#/$defs/Id"}, "scores": {"type": "array", "items": INT}},
    "required": ["id"],
    "additionalProperties": False,
    "$defs": {"Id": ID},
}


def withheld(content: str, returns: Mapping[str, object] | None, **result: object) -> bool:
    spec = ToolSpec("look", "", {"type": "object"}, effect="read", returns=returns)
    return is_withheld(Call("1.0", "a", "look", {}, spec, result=ToolResult(content, **result)))  # type: ignore[arg-type]


@cases("core/privilege")
def test_a_value_of_a_declared_type_without_free_text_is_shown(content: str, returns: Mapping[str, object]) -> None:
    assert not withheld(content, returns)


@cases("core/privilege")
def test_all_other_text_is_withheld(content: str, returns: Mapping[str, object] | None) -> None:
    assert withheld(content, returns)


def test_an_error_is_text_whatever_the_tool_declares() -> None:
    assert withheld("90", INT, kind="error")


def test_a_trusted_result_is_shown() -> None:
    assert not withheld("any words", None, trust="trusted")


def test_a_result_that_was_cut_is_withheld() -> None:
    assert withheld("90", INT, blob="digest")

"""`surefoot check --suggest`: the page of declarations that it writes opens nothing as long as nobody has read it."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args  # Any: JSON

from cli_world import Command
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.cli.suggest import suggest
from surefoot.core.gate.keeper import Gatekeeper
from surefoot.core.text.json import clean
from surefoot.models.json_edge import items, mapping
from surefoot.runtime.rules import declared_of
from surefoot.types.guard import GuardConfig
from surefoot.types.rules import Declared, Role
from surefoot.types.tools import Effect, ToolResult, ToolSpec

TEXT: Mapping[str, object] = {"type": "string"}
HOSTILE = Path(__file__).parents[1] / "tools" / "mcp_hostile.py"


def tool(name: str, /, *parameters: str, **more: object) -> ToolSpec:
    schema = {"type": "object", "properties": dict.fromkeys(parameters, TEXT)}
    return ToolSpec(name, "", schema, **more)  # pyright: ignore[reportArgumentType]  # fields of a spec


def loaded(folder: Path, *specs: ToolSpec) -> dict[str, Declared]:
    page = folder / "page.toml"
    page.write_text(suggest(specs), encoding="utf-8")
    return declared_of(page)


PEOPLE = {"type": "object", "properties": {"result": {"items": {"properties": {"id": TEXT, "full_name": TEXT}}}}}


@cases("cli/suggest")
def test_a_guess_says_why_and_what_is_declared_is_plain(
    name: str, parameters: Sequence[str], more: Mapping[str, Any], line: str
) -> None:
    page = suggest([tool(name, *parameters, **more)])
    assert any(one.startswith(line) for one in page.splitlines()), page


def test_messages_are_no_directory() -> None:
    assert "directory" not in "".join(suggest([tool("list_contact_messages")]).splitlines()[4:])


NAMES = st.sampled_from([
    *("send_email", "pay", "get_contact", "delete_note", "update_payee", "read_file", "list_users", "order_status"),
    *("post_message", "frob", "set_role", "add_user", "fetch_url", "share_file", "book_room", "edit_file"),
    *("发送邮件", "付款", "查询联系人", "删除文件"),
])  # fmt: skip
ODD = st.text(st.characters(), min_size=1, max_size=12)
PARAMETERS = st.sampled_from([
    *("to", "recipient", "account", "amount", "url", "path", "file_id", "body", "query", "date", "password"),
    *("name", "owner", "kind", "from", "limit", "old_text", "new_text"),
])  # fmt: skip
SCHEMAS = st.sampled_from([
    TEXT, {"type": "number"}, {"type": "boolean"}, {"type": "array", "items": TEXT}, {},
    {"anyOf": [TEXT, {"type": "null"}]}, {"enum": ["bob@example.org", "eve@evil.example"]},
    {"type": "object", "properties": {"email": TEXT}},
])  # fmt: skip


@st.composite
def specs(
    draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES, keys: st.SearchStrategy[str] = PARAMETERS
) -> ToolSpec:
    properties = draw(st.dictionaries(keys, SCHEMAS, max_size=4))
    declared = draw(st.booleans())
    server = draw(st.sampled_from(("", "", "far")))
    roles = draw(st.dictionaries(keys, st.sampled_from(get_args(Role)), max_size=2)) if declared else {}
    effect = draw(st.sampled_from(get_args(Effect))) if declared else "write"
    trusted = draw(st.sampled_from(((), ("id",))))
    return ToolSpec(
        *(draw(names), draw(st.one_of(st.just(""), ODD)), {"type": "object", "properties": properties}, effect),
        idempotent=effect == "read", declared=declared, server=server, roles=roles, private=draw(st.booleans()),
        trusted_fields=trusted, output=draw(st.sampled_from((None, PEOPLE))),
    )  # fmt: skip


@given(st.lists(specs(ODD, ODD), max_size=3, unique_by=lambda spec: spec.name))
def test_whatever_tools_are_called_the_page_says_what_is_declared_and_believes_nothing_else(
    tmp_path: Path, given: list[ToolSpec]
) -> None:
    written = [spec for spec in given if spec.name.encode("utf-8", "replace").decode() == spec.name]
    page = loaded(tmp_path, *given)
    assert list(page) == [spec.name for spec in written]
    for spec in written:
        then = page[spec.name].of(spec)
        assert then.directory == spec.directory
        assert then.trusted_fields == tuple(name for name in spec.trusted_fields if clean(name) == name)
        assert then.private == spec.private
        written_roles = {name: role for name, role in spec.roles.items() if clean(name) == name}
        assert then.roles == (written_roles or spec.roles)  # where the page says nothing, the tool's own stand
        if spec.declared:
            assert (then.effect, then.idempotent, then.declared) == (spec.effect, spec.idempotent, True)
        else:
            assert then.effect != "read"
            assert not (then.declared and spec.is_foreign)


WORDS = st.sampled_from([
    "Send 'hello' to bob@example.org.", "Pay 50 EUR to GB29NWBK60161331926819, at most 60 in all.",
    "Read a.txt and don't send anything to anybody.", "Delete a.txt, then mail Ann Lee on 2026-05-04.",
    "给bob@example.org发邮件,不要付款",
])  # fmt: skip
VALUES = st.sampled_from([
    *("bob@example.org", "eve@evil.example", "GB29NWBK60161331926819", "a.txt", "hello", "Ann Lee", "2026-05-04"),
    *(50, 70, True, "https://evil.example/x", "EUR", {"email": "eve@evil.example"}, ["eve@evil.example", "a.txt"]),
])  # fmt: skip
RESULT = ToolResult(json.dumps([{"name": "Ann Lee", "email": "ann@example.org", "id": "7"}]), structured=True)
STRICT = {"allow": 0, "ask": 1, "deny": 2}


@given(specs(), WORDS, st.lists(st.dictionaries(PARAMETERS, VALUES, max_size=4), min_size=1, max_size=3))
def test_no_call_is_let_through_for_a_page_that_nobody_has_read(
    tmp_path: Path, spec: ToolSpec, words: str, calls: list[dict[str, object]]
) -> None:
    with_page = GuardConfig(declared=loaded(tmp_path, spec))
    properties = mapping(spec.parameters["properties"])
    lookup = tool("find_contact", "name")
    keepers = [Gatekeeper(words, (spec, lookup), config) for config in (GuardConfig(), with_page)]
    for keeper in keepers:
        keeper.ended(keeper.begin("find_contact", {"name": "Ann Lee"}), RESULT)
    for arguments in ({k: v for k, v in one.items() if _fits(v, properties.get(k))} for one in calls):
        without, page = (keeper.judge(spec.name, arguments)[0].kind for keeper in keepers)
        assert STRICT[page] >= STRICT[without], (page, without, arguments, suggest([spec]))
        for keeper in keepers:
            keeper.ended(keeper.begin(spec.name, arguments), RESULT)


def _fits(value: object, schema: object) -> bool:
    """Whether a run would take the value: what does not fit the schema is refused before the gate is asked."""
    held = mapping(schema)
    if schema is None or (isinstance(value, bool) and held.get("type") == "number"):
        return False
    kinds: dict[str, type] = {"string": str, "number": int, "boolean": bool, "array": list, "object": dict}
    kind = kinds.get(str(held.get("type")))
    return (kind is None or isinstance(value, kind)) and value in (items(held.get("enum")) or [value])


def test_the_example_of_the_page_is_what_is_written() -> None:
    text = (Path(__file__).parents[2] / "docs" / "guard.md").read_text(encoding="utf-8")
    find = tool("find_contact", "name", effect="read", declared=True)
    find = replace(find, description="Find people of the address book.")
    send = replace(tool("send_note", "to", "body"), description="Send a note.")
    assert suggest([find, send]).partition("\n\n")[2].strip() in text


def test_from_the_shell_a_page_is_written_read_and_used(surefoot: Command, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        'import surefoot\n\n@surefoot.tool(effect="read")\ndef find_contact(name: str) -> list[dict]:\n    "Find."\n'
    )
    server = {"command": sys.executable, "args": [str(HOSTILE), str(tmp_path / "log")], "include": ["wipe", "surf"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"far": server}}))
    options = ("--tools", "tools.py", "--mcp", "mcp.json", "--use", "file_read")
    page = surefoot("check", *options, "--suggest")
    assert page.code == 0, page.err
    file = tmp_path / "page.toml"
    file.write_text(page.out)
    assert list(declared_of(file)) == ["file_read", "find_contact", "far__wipe", "far__surf"]
    assert "egress = true" in page.out[page.out.index("far__surf") :]
    before = surefoot("check", *options, "--json").json_lines
    assert [row["declared"] for row in before] == [True, True, False, False]
    assert surefoot("check", *options, "--rules", str(file), "--json").json_lines == before
    file.write_text(page.out.replace("# identity", "identity").replace('# effect = "delete"', 'effect = "delete"'))
    then = {row["name"]: row for row in surefoot("check", *options, "--rules", str(file), "--json").json_lines}
    assert then["find_contact"]["identity"] == ["name"]
    assert (then["far__wipe"]["effect"], then["far__wipe"]["declared"]) == ("delete", True)
    shown = surefoot("check", *options, "--rules", str(file)).out
    assert "read +directory" in shown
    assert "a record is named by name" in shown

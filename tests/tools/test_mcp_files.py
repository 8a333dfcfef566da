"""MCP servers as files say them, their names, and schemas of others."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast  # Any: JSON

import pytest

from cases import cases, each
from surefoot.core.parse.validate import Validator
from surefoot.tools.mcp.config import McpServer, servers_of
from surefoot.tools.mcp.offers import name_of
from surefoot.types.errors import ConfigError
from surefoot.types.rules import Declared


def file_of(tmp_path: Path, entries: Mapping[str, object]) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    return path


def test_a_file_in_the_form_of_the_field(tmp_path: Path) -> None:
    declared = {"read": {"effect": "read", "roles": {"path": "object"}, "trusted_fields": ["name"]}}
    given = {"command": "npx", "args": ["-y", "server", "${DIR:-/srv}", "${EMPTY:-x}"], "env": {"TOKEN": "${TOKEN}"}}
    web = {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout_s": 5}
    files = {**given, "type": "stdio", "tools": declared, "exclude": ["write_*"]}
    path = file_of(tmp_path, {"files": files, "web": web, "off": {"command": "gone", "disabled": True}})
    local, remote = servers_of(path, {"TOKEN": "hunter2", "EMPTY": ""})
    assert (local.command, local.args, local.env) == ("npx", ("-y", "server", "/srv", "x"), {"TOKEN": "hunter2"})
    assert local.tools == {"read": Declared("read", roles={"path": "object"}, trusted_fields=("name",))}
    assert local.takes("read")
    assert not local.takes("write_file")
    assert (remote.headers, remote.timeout_s) == ({"Authorization": "Bearer hunter2"}, 5)
    assert "hunter2" not in repr((local, remote))
    assert remote.without_secrets("401 for Bearer hunter2, hunter2") == "401 for ***, ***"


def test_servers_come_from_files_mappings_and_objects_together(tmp_path: Path) -> None:
    one = McpServer("one", command="x")
    two, three = {"two": {"command": "y"}}, file_of(tmp_path, {"three": {"command": "z"}})
    assert [server.name for server in servers_of([one, two, three])] == ["one", "two", "three"]
    assert [server.name for server in servers_of({"mcpServers": two})] == ["two"]
    with pytest.raises(ConfigError, match="is there twice"):
        servers_of([one, {"one": {"command": "y"}}])


@cases("tools/mcp_files")
def test_what_cannot_be_meant_is_told_with_its_place(tmp_path: Path, entry: dict[str, object], told: str) -> None:
    path = file_of(tmp_path, {"s": entry})
    with pytest.raises(ConfigError) as caught:
        servers_of(path, {})
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(("text", "told"), [
    ('{"mcpServers": {}, "servers": {}}', "unknown key 'servers' at the top"),
    ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "the key 'a' is there twice"),
    ('{"mcpServers": ', ": not valid JSON, line 1"), ("[]", "must be an object"),
])  # fmt: skip
def test_a_file_that_is_none(tmp_path: Path, text: str, told: str) -> None:
    (path := tmp_path / "mcp.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        servers_of(path)


def test_a_file_that_is_not_there_and_what_is_neither_a_file_nor_a_mapping(tmp_path: Path) -> None:
    for given, told in ((tmp_path / "none.json", "cannot be read: No such file"), (3, "must be an object")):
        with pytest.raises(ConfigError, match=told):
            servers_of(cast("Any", given))


@each("name", ["", "a__b", "_a", "a_", "a b", "a.b", "x" * 25, "查"])
def test_a_server_whose_name_cannot_begin_names_of_tools(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot begin the names of tools"):
        McpServer(name, command="x")


def test_names_are_stable_fit_every_wire_and_no_two_tools_share_one() -> None:
    assert name_of("s", "read-file_2") == "s__read-file_2"
    odd = ["a/b", "a.b", "a b", "a_b", "", "查询", "查找", "x" * 61, "x" * 62, "x" * 200, "é", "e\u0301"]
    names = [name_of("s", one) for one in odd]
    assert len(set(names)) == len(odd)
    assert all(len(name) <= 64 and name.isascii() and name.replace("-", "").isidentifier() for name in names)


def _doubling(levels: int) -> dict[str, Any]:
    refers = [{"$ref": f"#/$defs/{level + 1}"} for level in range(levels)]
    defined = {str(n): {"allOf": [ref, ref]} for n, ref in enumerate(refers)} | {str(levels): {}}
    return {"$defs": defined, "$ref": "#/$defs/0"}


@pytest.mark.parametrize(("schema", "value"), [
    (_doubling(40), {}), ({"pattern": "^(a+)+$"}, "a" * 60 + "b"),
    ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 60 + "b": 1}),
    ({"uniqueItems": True}, [{"n": n} for n in range(20_000)]),
], ids=["doubling", "pattern", "pattern of keys", "all with all"])  # fmt: skip
def test_a_schema_of_others_cannot_hold_us_up(schema: dict[str, object], value: object) -> None:
    before = time.process_time()
    Validator(schema, closed=False).faults(value)
    assert time.process_time() - before < 5

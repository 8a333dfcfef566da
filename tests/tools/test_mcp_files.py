"""MCP servers as files say them, their names, and schemas of others."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast  # Any: JSON

import pytest

from cases import each
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
    path = file_of(
        tmp_path,
        {
            "files": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "server", "${DIR:-/srv}", "${EMPTY:-x}"],
                "env": {"TOKEN": "${TOKEN}"},
                "tools": {"read": {"effect": "read", "roles": {"path": "object"}, "trusted_fields": ["name"]}},
                "exclude": ["write_*"],
            },
            "web": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout_s": 5},
            "off": {"command": "gone", "disabled": True},
        },
    )
    files, web = servers_of(path, {"TOKEN": "hunter2", "EMPTY": ""})
    assert (files.command, files.args, files.env) == ("npx", ("-y", "server", "/srv", "x"), {"TOKEN": "hunter2"})
    assert files.tools == {"read": Declared("read", roles={"path": "object"}, trusted_fields=("name",))}
    assert files.takes("read")
    assert not files.takes("write_file")
    assert (web.headers, web.timeout_s) == ({"Authorization": "Bearer hunter2"}, 5)
    assert "hunter2" not in repr((files, web))
    assert web.without_secrets("401 for Bearer hunter2, hunter2") == "401 for ***, ***"


def test_servers_come_from_files_mappings_and_objects_together(tmp_path: Path) -> None:
    one = McpServer("one", command="x")
    two, three = {"two": {"command": "y"}}, file_of(tmp_path, {"three": {"command": "z"}})
    assert [server.name for server in servers_of([one, two, three])] == ["one", "two", "three"]
    assert [server.name for server in servers_of({"mcpServers": two})] == ["two"]
    with pytest.raises(ConfigError, match="is there twice"):
        servers_of([one, {"one": {"command": "y"}}])


@pytest.mark.parametrize(("entry", "told"), [
    ({"command": "x", "comand": "y"}, "mcpServers.s.comand: unknown field; choose from type, disabled, command"),
    ({"command": "x", "tools": {"t": {"efect": "read"}}}, "mcpServers.s.tools.t.efect: unknown field"),
    ({"command": "x", "tools": {"t": {"effect": "reads"}}}, "mcpServers.s.tools.t.effect: choose one of read, write"),
    ({"command": "x", "args": "hush"}, "mcpServers.s.args: give a list of texts"),
    ({"command": "x", "timeout_s": 0}, "mcpServers.s.timeout_s: give seconds above 0"),
    ({}, "needs either a command to start or the url"),
    ({"command": "x", "url": "http://y"}, "needs either a command to start or the url"),
    ({"url": "ftp://y"}, "has a url that does not begin with http"),
    ({"url": "http://y", "env": {"A": "hush"}}, "env and cwd have no effect"),
    ({"type": "http", "command": "x"}, "type http needs a url"),
    ({"command": "x", "env": {"A": ["hush"]}}, "mcpServers.s.env: give a table of texts"),
    ({"command": "x", "secrets": ["hush"]}, "mcpServers.s.secrets: unknown field"),
    ({"command": "x", "tools": {"t": {"timeout_s": True}}}, "mcpServers.s.tools.t.timeout_s: give seconds above 0"),
    ({"type": "sse", "url": "http://y"}, "mcpServers.s.type: choose one of stdio"),
    ({"command": "${NOT_SET}"}, "mcpServers.s.command: the environment variable NOT_SET is not set"),
    ({"command": "x", "env": {"A": "hush ${1}"}}, "mcpServers.s.env.A: write a variable as"),
])  # fmt: skip
def test_what_cannot_be_meant_is_told_with_its_place_and_without_values(
    tmp_path: Path, entry: dict[str, object], told: str
) -> None:
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


def test_what_is_neither_a_file_nor_a_mapping() -> None:
    with pytest.raises(ConfigError, match="must be an object"):
        servers_of(cast("Any", 3))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        servers_of(tmp_path / "none.json")


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
    return {
        "$defs": {str(n): {"allOf": [ref, ref]} for n, ref in enumerate(refers)} | {str(levels): {}},
        "$ref": "#/$defs/0",
    }


@pytest.mark.parametrize(("schema", "value"), [
    (_doubling(40), {}), ({"pattern": "^(a+)+$"}, "a" * 60 + "b"),
    ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {"a" * 60 + "b": 1}),
    ({"uniqueItems": True}, [{"n": n} for n in range(20_000)]),
], ids=["doubling", "pattern", "pattern of keys", "all with all"])  # fmt: skip
def test_a_schema_of_others_cannot_hold_us_up(schema: dict[str, object], value: object) -> None:
    before = time.process_time()
    Validator(schema, closed=False).faults(value)
    assert time.process_time() - before < 5

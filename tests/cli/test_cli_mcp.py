"""`mcp list` and `--mcp`: servers of a file in the command line."""

import json
import sys
from pathlib import Path

from cli_world import Command, chat_server, says

from processes import free_port, listening

HOSTILE = Path(__file__).parent.parent / "tools" / "mcp_hostile.py"


def file_in(folder: Path, **more: object) -> str:
    entry = {"command": sys.executable, "args": [str(HOSTILE), str(folder / "log")], **more}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"h": entry}}), encoding="utf-8")
    return "mcp.json"


def test_mcp_list_shows_tools_effects_and_pins(surefoot: Command, tmp_path: Path) -> None:
    file = file_in(tmp_path, tools={"echo": {"effect": "read"}}, exclude=["die"])
    done = surefoot("mcp", "list", file)
    assert done.code == 0, done.err
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.startswith("  h__")}
    assert "read (declared)" in lines["h__echo"]
    assert "delete (taken for delete)" in lines["h__wipe"]
    assert "write +egress (taken for unknown)" in lines["h__surf"]
    assert "pin " in lines["h__wipe"]
    assert "  - die: left out by include and exclude" in done.out
    rows = [json.loads(line) for line in surefoot("mcp", "list", file, "--json").out.splitlines()]
    assert {row["remote"] for row in rows} >= {"echo", "files/read all"}
    assert all(len(row["pin"]) == 64 and row["spec"]["server"] == "h" for row in rows)


def test_resources_and_prompts_of_a_server_are_a_runs_material_and_task(surefoot: Command, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"held": {"url": f"http://127.0.0.1:{port}/mcp"}}}))
    held = listening(HOSTILE.parent / "mcp_held.py", [port], str(port))
    with held, chat_server(says("In the shed.")) as chat:
        listed = surefoot("mcp", "list", "mcp.json")
        assert "  resource notes://monday  monday" in listed.out
        assert "  prompt where(thing)" in listed.out
        asked = surefoot("mcp", "prompt", "mcp.json", "held/where", "thing=ladder")
        assert (asked.code, asked.out) == (0, "Where is the ladder?\n")
        given = ("--model", chat.model, "--mcp", "mcp.json", "--attach", "mcp:held/notes://monday")
        done = surefoot("run", *given, asked.out)
        assert (done.code, done.out) == (0, "In the shed.\n")
        assert "The ladder is in the shed." in json.dumps(chat.bodies[0])

"""The commands of docs/serving.md run as they stand there, one after the other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from processes import LIMIT_S, command, served, told_until

PAGE = Path(__file__).parent.parent.parent / "docs" / "serving.md"
AGENTS = """
from surefoot import Agent
from surefoot.testing.models import FunctionModel
agents = {"clerk": Agent(FunctionModel(lambda request: "The third note mentions Rome."))}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_commands_on_the_page_work(tmp_path: Path) -> None:
    if missing := [name for name in ("curl", "jq") if shutil.which(name) is None]:
        pytest.skip(f"the page's commands need {' and '.join(missing)}")
    serve, *asks, tokens = blocks("sh")
    surefoot = tmp_path / "surefoot"
    surefoot.write_text(f'#!/bin/sh\nexec {sys.executable} -m surefoot "$@"\n')
    surefoot.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert serve == "surefoot serve --agents agents.toml\n"
    with served(tmp_path, AGENTS) as (port, token):
        script = "set -e\n" + "".join(asks).replace(":7319", f":{port}").replace("curl -s", "curl -sf")
        asks = ("sh", "-c", script.replace("--max-time 5", "--max-time 20"))
        asked = {**env, "TOKEN": token}
        done = subprocess.run(
            asks, cwd=tmp_path, env=asked, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    assert done.returncode == 0, done
    assert done.stdout.count('"run_id"') >= 3
    assert "event: RunEnded" in done.stdout
    made = "".join(line for line in tokens.splitlines(keepends=True) if "serve" not in line)
    subprocess.run(("sh", "-ec", made), cwd=tmp_path, env=env, capture_output=True, timeout=LIMIT_S, check=True)
    assert (tmp_path / "tokens.toml").read_text().count("[[token]]") == 2
    last = tokens.splitlines()[-1].split()[1:]
    assert "--host" in last
    (tmp_path / "agents.toml").write_text(blocks("toml")[0])
    keyed = {**env, "OPENAI_API_KEY": "made-up"}
    with command(*last, "--port", "0", folder=tmp_path, environment=keyed) as process:
        assert "http://0.0.0.0:" in told_until("surefoot serves", process, process.stdout)
        process.terminate()


def test_each_right_and_option_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ("read", "start", "approve", "cancel", "admin"):
        assert f"| `{name}` |" in text
    for option in (
        "agents", "tokens", "drive", "origin", "host", "host-name", "proxy", "grace", "max-task", "no-token",
    ):  # fmt: skip
        assert f"--{option}" in text, option

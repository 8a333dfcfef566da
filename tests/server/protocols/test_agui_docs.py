"""The command of docs/agui.md runs as it stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("ag_ui", reason="needs the extra agui")

from sequence import Client

from processes import COMMAND, LIMIT_S, limited, told_until

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "agui.md"
AGENTS = """
from surefoot import Agent
from surefoot.testing.models import FunctionModel
agents = {"clerk": Agent(FunctionModel(lambda request: "The third note mentions Rome."))}
"""


def test_the_command_on_the_page_works(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the page's command needs curl")
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "agents.py").write_text(AGENTS)
    command = (*COMMAND, "serve", "--agents", "agents.py", "--port", "0")
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        link = re.search(r"http://127\.0\.0\.1:(\d+)/#t=(\S+)", told_until("surefoot serves", process, process.stdout))
        assert link is not None
        with limited(process):
            done = subprocess.run(
                ("sh", "-ec", script.replace(":7319", f":{link[1]}")),
                env={**os.environ, "TOKEN": link[2]},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        process.terminate()
    assert done.returncode == 0, done
    stream = [json.loads(line.removeprefix("data: ")) for line in done.stdout.splitlines() if line.startswith("data")]
    client = Client().see(stream).done()
    assert list(client.texts.values()) == ["The third note mentions Rome."]
    assert client.last["outcome"] == {"type": "success"}

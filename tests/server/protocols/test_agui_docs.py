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
from test_server_docs import AGENTS

from processes import LIMIT_S, served

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "agui.md"


def test_the_command_on_the_page_works(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the page's command needs curl")
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with served(tmp_path, AGENTS) as (port, token):
        command, env = ("sh", "-ec", script.replace(":7319", f":{port}")), {**os.environ, "TOKEN": token}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done
    stream = [json.loads(line.removeprefix("data: ")) for line in done.stdout.splitlines() if line.startswith("data")]
    client = Client().see(stream).done()
    assert list(client.texts.values()) == ["The third note mentions Rome."]
    assert client.last["outcome"] == {"type": "success"}

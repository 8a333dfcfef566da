"""`surefoot serve` and its page together, in a real browser."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from processes import COMMAND, LIMIT_S, told_until

HERE = Path(__file__).parent
BROWSER = HERE.parent / "page"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
AGENTS = "from server_agents import agents as made\nagents = made()\n"


@pytest.mark.page
@pytest.mark.slow
def test_a_person_allows_in_a_real_browser_what_a_real_server_shows(tmp_path: Path) -> None:
    if not CHROMIUM or shutil.which("node") is None or not (BROWSER / "node_modules" / "playwright-core").is_dir():
        pytest.skip("the page is not tested: `make test-page` fetches chromium and the node modules that this needs")
    (tmp_path / "agents.py").write_text(AGENTS)
    env = {**os.environ, "CHROMIUM": CHROMIUM, "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"}
    command = (*COMMAND, "serve", "--agents", "agents.py", "--port", "0")
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        link = re.search(r"http://\S+#t=\S+", told_until("surefoot serves", process, process.stdout))
        assert link is not None
        done = subprocess.run(
            ["node", "served.mjs", link[0]],
            cwd=BROWSER,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        process.terminate()
        process.wait(timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr

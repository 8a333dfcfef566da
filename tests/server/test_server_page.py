"""The page of `surefoot serve`: what it may hold, how large it is, and that it works in a real browser."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from processes import served
from surefoot.telling.state import CallStatus, LimitName
from surefoot.types.outcomes import Status
from surefoot.types.plan import StepStatus

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "surefoot" / "server" / "static"
BROWSER = ROOT / "tests" / "page"
MODULES = sorted(STATIC.glob("*.js"))
LIMIT_S = 580
PARTS = ("axe", "keys", "states", "hostile", "large")

FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|parseFromString|srcdoc",
    r"\beval\b|new Function|import\(\s*[^`\"']|setTimeout\(\s*[\"'`]|setInterval\(\s*[\"'`]",
    r"unsafeHTML|unsafeSVG|unsafeStatic|trustedTypes|createPolicy",
    r"setAttribute\(\s*[\"']on|\sstyle=|styleMap|javascript:",
    r"https?://(?!www\.w3\.org/2000/svg)|\bEventSource\b|\bWebSocket\b|sendBeacon|document\.cookie",
)
"""What would let a text become markup or code, or the page talk to somebody else."""


@pytest.mark.parametrize("path", [*MODULES, STATIC / "index.html", STATIC / "style.css"], ids=lambda path: path.name)
def test_no_text_can_become_markup_and_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not [found[0] for pattern in FORBIDDEN for found in re.finditer(pattern, text)]
    if path.suffix == ".html":
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=", text)


def test_the_page_keeps_its_size() -> None:
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert sum(lines.values()) <= 2500
    assert not {name: count for name, count in lines.items() if count > 400}
    served = [
        *MODULES, *STATIC.glob("*.json"), *STATIC.glob("*.html"), *STATIC.glob("*.css"), *STATIC.glob("vendor/*.js"),
    ]  # fmt: skip
    assert sum(path.stat().st_size for path in served) <= 120 * 1024


def test_what_others_wrote_is_as_they_wrote_it() -> None:
    told = (STATIC / "vendor" / "README.txt").read_text("utf-8")
    assert hashlib.sha256((STATIC / "vendor" / "lit-html.js").read_bytes()).hexdigest() in told
    assert "BSD 3-Clause" in (STATIC / "vendor" / "lit-html.LICENSE").read_text("utf-8")
    assert [path.name for path in STATIC.glob("vendor/*.js")] == ["lit-html.js"]


def test_both_languages_have_the_same_texts_with_the_same_values() -> None:
    def told(name: str) -> dict[str, list[str]]:
        groups: dict[str, dict[str, str]] = json.loads((STATIC / f"{name}.json").read_text("utf-8"))
        texts = {f"{group}.{key}": text for group, held in groups.items() for key, text in held.items()}
        return {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in texts.items() if not key.endswith(".one")}

    assert told("en") == told("zh")


def test_each_text_that_a_module_names_is_there() -> None:
    groups: dict[str, dict[str, str]] = json.loads((STATIC / "en.json").read_text("utf-8"))
    texts = {f"{group}.{key}" for group, held in groups.items() for key in held}
    named = {key for path in MODULES for key in re.findall(r"\bt\(\"([a-z]*\.[\w.]+)\"", path.read_text("utf-8"))}
    assert named - texts == set()


def test_each_status_and_each_limit_has_its_word() -> None:
    groups: dict[str, dict[str, str]] = json.loads((STATIC / "en.json").read_text("utf-8"))
    statuses = {status for kind in (CallStatus, Status, StepStatus) for status in get_args(kind)}
    assert statuses - set(groups["status"]) == set()
    assert set(get_args(LimitName)) == set(groups["budget"])


@pytest.fixture
def play() -> Callable[..., None]:
    """Runs a program of `tests/page` with a real browser, where there is one. It has to come to a good end."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
    if not chromium or shutil.which("node") is None or not (BROWSER / "node_modules" / "playwright-core").is_dir():
        pytest.skip("the page is not tested: `make test-page` fetches chromium and the node modules that this needs")

    def played(*program: str) -> None:
        env = {**os.environ, "CHROMIUM": chromium, "SUREFOOT_PYTHON": sys.executable}
        node = ["node", *program]
        done = subprocess.run(node, cwd=BROWSER, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        sys.stdout.write(done.stdout)

    return played


@pytest.mark.page
@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_the_page_in_a_real_browser(play: Callable[..., None], part: str) -> None:
    play("page.mjs", part)


@pytest.mark.page
@pytest.mark.slow
def test_a_person_allows_in_a_real_browser_what_a_real_server_shows(play: Callable[..., None], tmp_path: Path) -> None:
    beside = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    agents = "from server_agents import agents as made\nagents = made()\n"
    with served(tmp_path, agents, beside, LIMIT_S) as (port, token):
        play("served.mjs", f"http://127.0.0.1:{port}/#t={token}")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_rows_that_are_fetched_twice_at_once_are_shown_once() -> None:
    command = ["node", "--experimental-default-type=module", BROWSER / "rows.mjs", STATIC / "rows.js"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert json.loads(done.stdout) == [0, 1, 2, 3, 4], done.stderr

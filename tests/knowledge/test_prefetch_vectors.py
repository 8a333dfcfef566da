"""The shared cases of pre-hydration, where the checkout has them beside it, and what their hostile references meet."""

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from surefoot.testing.conformance import expand
from surefoot.testing.kinds_prehydrate import symbiont_prehydrate
from surefoot.tools.files import file_tools
from surefoot.tools.web import web_fetch_tool
from surefoot.tools.workspace import Workspace
from surefoot.types.ports import ToolCallContext

SHARED = Path(__file__).parents[3] / "shared" / "vectors"
KIND = "symbiont_prehydrate"
CONTEXT = ToolCallContext(run_id="run", call_id="call", idempotency_key="key")


def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", SHARED / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared conformance cases are not beside this checkout")
def test_every_shared_case_holds_but_the_habits_of_one_implementation() -> None:
    data = cast("Mapping[str, object]", expand(json.loads((SHARED / f"{KIND}.json").read_text(encoding="utf-8"))))
    results = symbiont_prehydrate(data)
    missed = [
        f"{case_id}: {fault}"
        for case_id, case, compare in scorer().checks(KIND, data)
        if case.get("source") != "impl" and (fault := compare(case, results[case_id]))
    ]
    assert missed == []


def test_a_configuration_that_is_refused_is_told() -> None:
    case = {"id": "a", "input": "x", "config": {"custom_patterns": [{"ref_type": "x", "pattern": "("}]}}
    results = symbiont_prehydrate({"extraction": [case], "adversarial": [], "hydration": []})
    assert "pattern='('" in cast("Mapping[str, str]", results["a"])["config_error"]


@pytest.mark.anyio
@pytest.mark.parametrize("url", [
    "http://169.254.169.254/latest/meta-data/", "http://10.0.0.5/", "http://192.168.1.1/", "http://172.16.0.1/",
    "http://[fd00::1]/", "http://localhost:3000", "http://2130706433/", "http://127.1/", "http://localhost./",
    "http://[::ffff:10.0.0.5]/", "http://metadata.google.internal/", "https://user:secret@e.com/x",
    "https://e.com/\u202egnp.exe",
])  # fmt: skip
async def test_no_hostile_url_is_resolved(url: str) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(f"{host}:{port} was looked up")

    result = await web_fetch_tool(resolve=resolve).call({"url": url}, CONTEXT)
    assert result.is_error


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["../../etc/passwd.bak", "/etc/passwd", "~/.ssh/config.old", "./link.txt", "./.env"])
async def test_no_file_outside_the_workspace_or_of_secrets_is_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "link.txt").symlink_to("/etc/passwd")
    (tmp_path / ".env").write_text("KEY=1", encoding="utf-8")
    read = next(tool for tool in file_tools(Workspace(tmp_path)) if tool.spec.name == "file_read")
    assert (await read.call({"path": path}, CONTEXT)).is_error

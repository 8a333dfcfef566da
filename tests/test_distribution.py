"""What surefoot costs to install and to import."""

import re
import subprocess
import sys
from importlib import metadata
from importlib.resources import files

import pytest

import surefoot

MOST_DISTRIBUTIONS = 18  # besides surefoot itself; docs/decisions/05 says why it is counted so
HEAVY = "aiohttp asyncio docstring_parser jsonschema_rs pydantic rapidfuzz rich sqlite3 typer xllamacpp"


def requirements_of(name: str) -> set[str]:
    """What a distribution needs on this Python without any extra, itself included, all the way down."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if one in found:
            continue
        found.add(one)
        for line in metadata.requires(one) or ():
            requirement, _, marker = line.partition(";")
            if "extra ==" in marker or "sys_platform" in marker or "implementation_name" in marker:
                continue
            if (version := re.search(r'python_version < "(\d+)\.(\d+)"', marker)) and sys.version_info >= (
                int(version[1]),
                int(version[2]),
            ):
                continue
            if match := re.match(r"[A-Za-z0-9._-]+", requirement.strip()):
                waiting.append(match[0])
    return found


def test_the_library_alone_installs_few_distributions() -> None:
    needed = requirements_of("surefoot") - {"surefoot"}
    assert len(needed) <= MOST_DISTRIBUTIONS, sorted(needed)


def test_type_checkers_read_the_types_of_the_package() -> None:
    assert (files(surefoot) / "py.typed").is_file()


ADD = "def add(a: int, b: list[str] | None = None) -> str:\n    'Add.'\n"
WITH_A_SERVICE = """
class Db: ...
def keep(a: int, db: Db, other: Db | None = None) -> dict[Literal['a', 'b'], list[int] | None]:
    'Keep.'
tool(keep).bound({Db}).spec
"""


@pytest.mark.parametrize(
    ("program", "unneeded"),
    [
        pytest.param(program, unneeded, id=program.partition("\n")[0])
        for program, unneeded in {
            "import surefoot": f"{HEAVY} surefoot.server starlette uvicorn",
            f"from surefoot import Agent, tool\n{ADD}Agent('http://127.0.0.1:9/v1#m', tools=[add])": (
                "aiohttp mcp mcp_types pydantic rapidfuzz rich surefoot.telling typer xllamacpp"
            ),
            f"import surefoot.tools.builtin\nfrom surefoot import tool\nfrom typing import Literal\n{ADD}tool(add).spec"
            f"{WITH_A_SERVICE}": "aiohttp docstring_parser pydantic yarl",
            "import asyncio; from surefoot.testing.models import ScriptedModel\nfrom surefoot import Agent\n"
            "asyncio.run(Agent(ScriptedModel(['done'])).run('go'))": "opentelemetry surefoot.telling",
            "from surefoot.models.names import resolve; resolve('ollama:m')": "aiohttp",
            "from surefoot.cli.main import commands; commands('serve')": (
                "rich.table surefoot.cli.conduct surefoot.cli.live"
            ),
            "import surefoot.telling.compare, surefoot.telling.export, surefoot.telling.state, surefoot.telling.why": (
                "rich surefoot.journal surefoot.knowledge surefoot.runtime typer"
            ),
            "import surefoot.testing.pytest_plugin": "surefoot.agent",
        }.items()
    ],
)
def test_what_is_not_needed_is_not_loaded(program: str, unneeded: str) -> None:
    command = [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert "surefoot" in told
    assert not [one for one in told for name in unneeded.split() if one == name or one.startswith(f"{name}.")]

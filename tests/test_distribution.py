"""What surefoot costs to install and to import."""

import re
import subprocess
import sys
from importlib import metadata
from importlib.resources import files

import surefoot

MOST_DISTRIBUTIONS = 18  # besides surefoot itself; docs/decisions/05 says why it is counted so
HEAVY = (
    "pydantic",
    "aiohttp",
    "asyncio",
    "sqlite3",
    "jsonschema_rs",
    "docstring_parser",
    "rapidfuzz",
    "typer",
    "rich",
    "xllamacpp",
)


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


def test_importing_surefoot_loads_nothing_heavy() -> None:
    code = "import sys, surefoot; print(*(m for m in sys.modules if '.' not in m))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert "surefoot" in out
    assert not set(HEAVY) & set(out)


def test_an_agent_is_ready_without_pydantic_or_an_http_client() -> None:
    code = (
        "import sys\n"
        "from surefoot import Agent, tool\n"
        "def add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\n"
        "Agent('http://127.0.0.1:9/v1#m', tools=[add])\n"
        "print(*(m for m in sys.modules if '.' not in m))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert not {"pydantic", "aiohttp", "rapidfuzz", "typer", "rich", "xllamacpp"} & set(out)


def test_a_command_loads_no_other() -> None:
    code = "import sys; from surefoot.cli.main import commands; commands('serve'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "surefoot.cli.serve" in done.stdout.split()
    assert not {"surefoot.cli.conduct", "surefoot.cli.live", "rich.table"}.intersection(done.stdout.split())

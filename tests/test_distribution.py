"""What surefoot costs to install and to import."""

import re
import subprocess
import sys
from importlib import metadata
from importlib.resources import files

import surefoot
from cases import cases

MOST_DISTRIBUTIONS = 18  # besides surefoot itself; docs/decisions/05 says why it is counted so


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
            limit = re.search(r'python_version < "(\d+)\.(\d+)"', marker)
            if limit and sys.version_info >= (int(limit[1]), int(limit[2])):
                continue
            if match := re.match(r"[A-Za-z0-9._-]+", requirement.strip()):
                waiting.append(match[0])
    return found


def test_the_library_alone_installs_few_distributions() -> None:
    needed = requirements_of("surefoot") - {"surefoot"}
    assert len(needed) <= MOST_DISTRIBUTIONS, sorted(needed)


def test_type_checkers_read_the_types_of_the_package() -> None:
    assert (files(surefoot) / "py.typed").is_file()


@cases("distribution")
def test_what_is_not_needed_is_not_loaded(program: str, unneeded: str) -> None:
    command = [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert "surefoot" in told
    assert not [one for one in told for name in unneeded.split() if one == name or one.startswith(f"{name}.")]

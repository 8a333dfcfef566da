"""Is what is released what should be? The wheel and sdist of a folder, looked at and installed where nothing else is.

`python tests/wheel.py build/dist` (`make dist`) takes the Python that it runs on. It prints what it found, and ends
with 1 when a file is there that should not be or a run fails.
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

RUN = """
import sys, surefoot
from surefoot import Agent, tool
from surefoot.testing.models import ScriptedModel, calls

@tool(effect="read")
def score(name: str) -> int:
    "Exam score of one student."
    return 90

with Agent(ScriptedModel([calls(("score", {"name": "Alice"})), "90"]), [score], journal="runs.db") as agent:
    run = agent.run_sync("What is Alice's score?")
    assert agent.resume_sync(run.id).answer == "90"
print("surefoot", surefoot.__version__, "on Python", sys.version.split()[0], run.status)
"""
IN_SDIST = {".gitignore", "CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


def odd_files(wheel: Path, sdist: Path) -> list[str]:
    """Files that belong into neither."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    odd = [name for name in names if not name.startswith(("surefoot/", "surefoot-")) or "__pycache__" in name]
    odd += [name for name in names if name.startswith(("surefoot/evals/", "surefoot/tests/"))]
    with tarfile.open(sdist) as packed:
        below = [name.partition("/")[2] for name in packed.getnames()]
    return odd + [
        name for name in below if not name.startswith(("src/surefoot/", "examples/")) and name not in IN_SDIST
    ]


def installed(package: Path) -> int:
    """Install it into an empty environment and make a run there; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(f"{folder}/env", with_pip=True)
        python = Path(folder, "env", "Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True, timeout=600)
        return subprocess.run([python, "-c", RUN], cwd=folder, check=False, timeout=120).returncode


def main(folder: Path) -> int:
    """Both files of the folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    odd = odd_files(wheel, sdist)
    print(*(f"does not belong there: {name}" for name in odd), sep="\n")
    return 1 if odd else installed(wheel.absolute())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

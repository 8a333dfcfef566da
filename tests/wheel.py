"""Is what is released what should be? The wheel and sdist of a folder, looked at and installed where nothing else is.

`python tests/wheel.py build/dist` (`make dist`) takes the Python that it runs on. It prints what it found, and ends
with 1 when a file is there that should not be or the first example of the README does not print what stands below it.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from chat_server import calls, chat_server, says

README = Path(__file__).parent.parent / "README.md"
VERSION = "import sys, surefoot\nprint('surefoot', surefoot.__version__, 'on Python', sys.version.split()[0])\n"
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
    """Install it into an empty environment and play the README's first example; 0 if it prints what it should."""
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found, "the README has no example with its output"
    asked = calls(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "Bob"}))
    with tempfile.TemporaryDirectory() as folder, chat_server(asked, says("Together they have 171 points.")) as chat:
        venv.create(f"{folder}/env", with_pip=True)
        python = Path(folder, "env", "Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True, timeout=600)
        environment = {**os.environ, "OPENAI_BASE_URL": chat.url, "OPENAI_API_KEY": "sk-made-up", "PYTHONPATH": ""}
        told = subprocess.check_output(
            [python, "-c", VERSION + found[1]], cwd=folder, env=environment, text=True, timeout=120
        )
    print(told, end="")
    return 0 if told.partition("\n")[2] == found[2] else 1


def main(folder: Path) -> int:
    """Both files of the folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    odd = odd_files(wheel, sdist)
    print(*(f"does not belong there: {name}" for name in odd), sep="\n")
    return 1 if odd else installed(wheel.absolute())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

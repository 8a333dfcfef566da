"""Pages that are walked: each file on them is written, each command run, and what stands below it must come out."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from cases import cases
from chat_server import calls, chat_server, says
from processes import ran

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(\w+)(?: title=\"(\S+\.\w+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECIPE = re.compile(r"(?ms)^## ([^\n]+)\n\n(?:<!-- model: ([^\n]+) -->\n)?```python\n(.*?)^```\n\n```text\n(.*?)^```$")
RECIPES = [
    pytest.param(*parts, id=title)
    for page in sorted(DOCS.glob("c*/*.md"))  # the cookbook, and those who come from elsewhere
    for title, *parts in RECIPE.findall(page.read_text(encoding="utf-8"))
]

Reply = str | Sequence[tuple[str, Mapping[str, object]]]  # what the model says: words, or calls


@contextmanager
def speaking(replies: Sequence[Reply], folder: Path) -> Generator[dict[str, str]]:
    """The environment of a process whose model says all of these, one after another."""
    with chat_server(*(says(one) if isinstance(one, str) else calls(*one) for one in replies)) as chat:
        yield {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "HOME": str(folder),
            "OPENAI_BASE_URL": chat.url,
            "OPENAI_API_KEY": "sk-made-up",
        }
    assert not chat.script


def output_of(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@cases("docs_walks")
def test_what_a_page_says_comes_out(page: str, said: Sequence[Reply], tmp_path: Path) -> None:
    out = ""
    with speaking(said, tmp_path) as environment:
        for language, name, text in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
            if name:
                (tmp_path / name).write_text(text.replace('"local"', '"openai:gpt-5.1-mini"'), encoding="utf-8")
            elif language == "sh":
                out = output_of(["bash", "-euc", text], tmp_path, environment)
            elif language == "text":
                assert re.fullmatch(".*".join(map(re.escape, text.split("…"))), out, re.DOTALL), (text, out)


@pytest.mark.slow
@pytest.mark.parametrize(("script", "code", "told"), RECIPES)
def test_a_recipe_prints_what_stands_below_it(script: str, code: str, told: str, tmp_path: Path) -> None:
    with speaking(json.loads(script or "[]"), tmp_path) as environment:
        done = ran(code, folder=tmp_path, environment=environment)
    assert (done.stdout, done.returncode) == (told, 0), done.stderr

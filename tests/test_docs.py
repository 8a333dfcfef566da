"""Every Python example of the README and the docs runs, against a local server that speaks the OpenAI wire."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from chat_server import Json, calls, chat_server, says
from processes import ran
from surefoot.testing.world import plan, step

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL), 1)
    if "sys.argv" not in block  # what is given arguments is run by the test of its page
]


PLAN = json.dumps(plan(*(step(name.lower(), "exam_score", name=name) for name in ("Alice", "Bob"))))


def teach(asked: Json) -> Json:
    """Ask for both scores, then add up."""
    messages, tools = cast("list[Json]", asked["messages"]), str(asked.get("tools", ""))
    if '"steps"' in json.dumps(asked.get("response_format")):  # a plan is asked for
        return says(PLAN)
    if tools and not any(one["role"] == "tool" for one in messages):
        return calls(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "Bob"}))
    if "final_answer" in tools:
        return says('{"sum": 171, "names": ["Alice", "Bob"]}')
    if "result" in str(asked.get("response_format")):
        return says('{"result": ["Alice", "Bob"]}')
    return says("Together they have 171 points.")


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with chat_server(teach) as chat:
        yield chat.url


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_runs(block: str, base_url: str, tmp_path: Path) -> None:
    code = block
    if re.search(r"^(run = )?await |^async for ", block, re.MULTILINE):  # as in a notebook
        code = "import asyncio\nasync def example():\n" + re.sub("^", "    ", block, flags=re.MULTILINE)
        code += "\n    await agent.aclose()\nasyncio.run(example())"
    environment = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-made-up", "SUREFOOT_TRAITS_FILE": ""}
    done = ran(code, folder=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr


def test_the_first_example_of_the_readme_prints_what_stands_below_it(base_url: str, tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    assert found is not None
    environment = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-made-up", "SUREFOOT_TRAITS_FILE": ""}
    done = ran(found[1], folder=tmp_path, environment=environment)
    assert (done.stdout, done.returncode) == (found[2], 0), done.stderr

"""Files that must not be read, asked of `file_read` and named in a task. Source: spec/primitives.md, 3.5 and 3.7."""

import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from cases import cases
from surefoot import Agent, LoopConfig, MemoryJournal, tool
from surefoot.testing.models import ScriptedModel
from surefoot.tools.builtin import file_tools
from surefoot.tools.workspace import Workspace
from surefoot.types.events import CallStarted, PreHydrationComplete
from surefoot.types.ports import Tool
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
Call = Callable[..., Awaitable[ToolResult]]
SECRET, PLAIN = "the secret outside", "the plain text inside"

ALLOWED = ("./inside.txt", "./src/../inside.txt", "./inner.txt", "./linked/deep.txt", "{root}/inside.txt")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace with all of that in it, beside the home of its user and a folder with the secret."""
    root, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (outside, tmp_path / "work-evil", root / "src", root / "folder.txt", root / ".ssh", root / ".aws"):
        folder.mkdir(parents=True)
    for place in (outside, tmp_path / "work-evil"):
        (place / "secret.txt").write_text(SECRET)
    for name in (".env.local", "server.pem", "Server.PEM", ".ssh/config.txt", ".aws/credentials.txt"):
        (root / name).write_text(SECRET)
    for name in ("inside.txt", "src/deep.txt"):
        (root / name).write_text(PLAIN)
    links = {
        "leak.txt": outside / "secret.txt", "leak2.txt": "leak.txt", "leaks": outside, "up": "..",
        "dangling.txt": outside / "new.txt", "loop.txt": "loop.txt", "zero.txt": "/dev/zero", "plain.txt": ".env.local",
        "inner.txt": "inside.txt", "linked": "src",
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.txt")
    monkeypatch.setenv("HOME", str(outside))
    monkeypatch.chdir(root)  # the path of a socket may be no longer than 107 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.txt")
        yield root


def written(path: str, root: Path) -> str:
    return path.format(root=root, outside=root.parent / "outside")


def file_read(root: Path) -> Tool:
    return next(each for each in file_tools(Workspace(root)) if each.spec.name == "file_read")


async def prefetched(root: Path, task: str) -> tuple[PreHydrationComplete, int, str]:
    """What came of a task's references, how many calls were begun, and all that the model was sent."""
    model, store = ScriptedModel(["done"]), MemoryJournal()
    agent = Agent(model, [file_read(root)], config=LoopConfig(pre_hydration=PreHydrationConfig()), journal=store)
    run = await agent.run(task)
    assert run.status == "completed"
    events = [record.event for record in (await store.read_recorded(run.id))[0]]
    (complete,) = [event for event in events if isinstance(event, PreHydrationComplete)]
    sent = "\n".join(message.content for request in model.requests for message in request.messages)
    return complete, sum(isinstance(event, CallStarted) for event in events), sent


@cases("tools/escapes")
async def test_named_in_a_task_it_is_not_fetched(root: Path, path: str) -> None:
    """adv-file-escape, adv-file-symlink"""
    complete, _, sent = await prefetched(root, f'Compare "{written(path, root)}" with ./inside.txt, please.')
    assert SECRET not in sent
    assert PLAIN in sent, "one that is refused holds up no other"
    assert [item.value for item in complete.items if item.status == "resolved"] == ["./inside.txt"]
    assert complete.references_found == 2, "it was taken for a reference, so that refusing it was the point"


@pytest.mark.parametrize("path", ALLOWED)
async def test_what_is_inside_is_read_both_ways(root: Path, call: Call, path: str) -> None:
    assert (await call(file_read(root), path=written(path, root))).content == PLAIN
    complete, begun, sent = await prefetched(root, f'Read "{written(path, root)}".')
    assert (complete.references_resolved, begun) == (1, 1)
    assert PLAIN in sent


async def test_a_resolver_that_would_read_anything_is_asked_only_what_the_text_does_not_forbid() -> None:
    """adv-rtl: what a person reads in an approval or a log is not what would be fetched."""
    asked: list[str] = []

    @tool(effect="read")
    async def page(url: str) -> str:
        """Reads anything."""
        asked.append(url)
        return PLAIN

    config = LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools={"url": "page"}))
    refused = ("http://u:word@x.org/a", "http://x.org/\u202ex", "http://x.org/\u061cx", f"http://x.org/{'x' * 3000}")
    task = f"See {' and '.join(refused)} and http://x.org/good"
    agent = Agent(ScriptedModel(["done"]), [page], config=config)
    assert (await agent.run(task)).status == "completed"
    assert asked == ["http://x.org/good"]

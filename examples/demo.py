"""The main job on real input: six tasks for the embedded model, each by the command that a user would type.

Every task runs as `surefoot run …` in a fresh folder; what the model answers or writes is then checked, and the demo
fails when one of them is wrong. Two need what surefoot brings before the model is first asked: there the journal
must say so, too, as `surefoot show` tells it. One has a plan, of which a step fails: a file is in another format than
its name says. Run it with `make demo`, or anywhere with `surefoot demo`.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

EXAMPLES = Path(__file__).resolve().parent
SUREFOOT = (sys.executable, "-m", "surefoot")
TASKS = json.loads((EXAMPLES / "served" / "tasks.json").read_text(encoding="utf-8"))
LIMIT_S = 1100
"""Seconds that a task may take."""


@dataclass(frozen=True)
class Demo:
    """One task: what is asked, with which tools, in a copy of which folder, and how its result is checked.

    `{host}` in arguments and question is where the demo serves its pages. `brought` are the lines (parts of them) that
    `surefoot show` must have before the first step.
    """

    title: str
    arguments: tuple[str, ...]
    question: str
    is_right: Callable[[str, Path], bool]
    workspace: str = "notes"
    brought: tuple[str, ...] = ()


def _is_one_sentence_about_the_hut(_answer: str, folder: Path) -> bool:
    written = folder / "summary.txt"
    if not written.is_file():
        return False
    text = written.read_text(encoding="utf-8").strip()
    facts = ("bed", "june", "september", "soup", "water", "spring", "telephone", "signal", "open")
    return "hut" in text.lower() and any(f in text.lower() for f in facts) and "\n" not in text and len(text) <= 222


def _has_the_entry(_answer: str, folder: Path) -> bool:
    written = folder / "log" / "tuesday.md"
    text = written.read_text(encoding="utf-8").strip() if written.is_file() else ""
    return re.fullmatch(r"KAR-7: The ferry is closed\.?", text) is not None


def _costs_68(answer: str, _folder: Path) -> bool:
    return re.findall(r"\d+", answer)[-1:] == ["68"]  # "4 × 17 = 68" is right, too


DEMOS = (
    Demo(
        "two scores looked up with a function tool, and added",
        ("--no-builtin", "--tools", str(EXAMPLES / "scores.py")),
        TASKS["teacher"],
        lambda answer, _folder: "171" in answer,
    ),
    Demo(
        "a question answered from a folder of notes",
        ("--use", "file_search,file_read"),
        TASKS["guide"],
        lambda answer, _folder: "1987" in answer,
    ),
    Demo(
        "a summary of one note, written to a file",
        ("--use", "file_read", "--tools", str(EXAMPLES / "summary.py")),
        TASKS["editor"],
        _is_one_sentence_about_the_hut,
    ),
    Demo(
        "an entry in a folder that has a convention of its own",
        ("--use", "file_write"),
        TASKS["keeper"],
        _has_the_entry,
        "logbook",
        ("conventions read before the first model call: log/AGENTS.md",),
    ),
    Demo(
        "a sum of what a page and a file say, both fetched before the model is asked",
        ("--prefetch", "--use", "file_read,web_fetch,arithmetic", "--include", "arithmetic", "--allow-host", "{host}"),
        "What do the tickets of ./order.md cost in all? The prices are at http://{host}/prices.txt.",
        _costs_68,
        "trip",
        ("fetched before the first model call: 2 of 2", "/prices.txt  resolved", "./order.md  resolved"),
    ),
    Demo(
        "two tables added up by a plan that repairs itself: one is in another format than its name says",
        ("--reasoner", "plan", "--no-builtin", "--tools", str(EXAMPLES / "harvest.py")),
        TASKS["accountant"],
        lambda answer, _folder: re.findall(r"\d+(?:\.\d+)?", answer)[-1:] in (["641"], ["641.0"]),
        "harvest",
    ),
)


class _Pages(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # nothing of it is used
        """Say nothing on stderr."""


@contextmanager
def pages() -> Generator[str]:
    """Serve the folder `pages` on loopback; gives host and port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(EXAMPLES / "pages")))
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def was_brought(demo: Demo, folder: Path) -> bool:
    """Whether the journal has what the task needs before the first step; shows what it has there."""
    listed = subprocess.run(
        [*SUREFOOT, "runs", "--json"], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    run_id = json.loads(listed.stdout)["run"]["run_id"]
    shown = subprocess.run(
        [*SUREFOOT, "show", run_id], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    before, first_step, _ = shown.stdout.partition("\nstep 1 ·")
    lines = [line for line in before.splitlines() if any(part in line for part in demo.brought)]
    print(f"   surefoot show {run_id}, before its first step:", *lines, sep="\n   ")
    return bool(first_step) and all(any(part in line for line in lines) for part in demo.brought)


def play(demo: Demo, host: str) -> bool:
    """Run one task in a fresh copy of its folder, show its steps, and say whether it came out right."""
    folder = Path(tempfile.mkdtemp(prefix="surefoot-demo-"))
    shutil.copytree(EXAMPLES / demo.workspace, folder, dirs_exist_ok=True)
    given = [text.replace("{host}", host) for text in (*demo.arguments, demo.question)]
    print(f"\n── {demo.title}\n   {shlex.join(['surefoot', 'run', *given])}\n", flush=True)
    begun = time.monotonic()
    command = [*SUREFOOT, "run", *given]
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"   ✗ no answer in {LIMIT_S} s")
        return False
    answer = done.stdout.strip()
    right = done.returncode == 0 and demo.is_right(answer, folder)
    print(f"   answer: {answer}")
    for written in sorted((*folder.glob("summary.txt"), *folder.glob("log/tuesday.md"))):
        print(f"   {written.relative_to(folder)}: {written.read_text(encoding='utf-8').strip()}")
    if demo.brought and done.returncode == 0:
        right = was_brought(demo, folder) and right
    print(f"   {'✓ right' if right else '✗ WRONG'} in {time.monotonic() - begun:.0f} s", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return right


def main() -> int:
    """All of them, or those whose numbers are given; a number after `x` repeats them: `demo.py 1 3 x10`."""
    numbers = range(1, len(DEMOS) + 1)
    wanted = [number for a in sys.argv[1:] for number in numbers if a == str(number)] or numbers
    times = next((int(a[1:]) for a in sys.argv[1:] if re.fullmatch(r"x\d+", a)), 1)
    with pages() as host:
        counts = {number: sum(play(DEMOS[number - 1], host) for _ in range(times)) for number in wanted}
    print("\n" + "   ".join(f"task {number}: {right} of {times} right" for number, right in counts.items()))
    return 0 if all(right == times for right in counts.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""The main job on real input: three tasks for the embedded model, each by the command that a user would type.

Every task runs as `surefoot run …` in a fresh folder; what the model answers or writes is then checked, and the demo
fails when one of the three is wrong. Run it with `make demo`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Demo:
    """One task: what is asked, with which tools, and how its result is checked."""

    title: str
    arguments: tuple[str, ...]
    question: str
    is_right: Callable[[str, Path], bool]


def _is_one_sentence_about_the_hut(_answer: str, folder: Path) -> bool:
    written = folder / "summary.txt"
    if not written.is_file():
        return False
    text = written.read_text(encoding="utf-8").strip()
    facts = ("bed", "june", "september", "soup", "water", "spring", "telephone", "signal", "open")
    return "hut" in text.lower() and any(f in text.lower() for f in facts) and "\n" not in text and len(text) <= 222


DEMOS = (
    Demo(
        "two scores looked up with a function tool, and added",
        ("--no-builtin", "--tools", str(EXAMPLES / "scores.py")),
        "What is the sum of Alice's and Bob's exam scores?",
        lambda answer, _folder: "171" in answer,
    ),
    Demo(
        "a question answered from a folder of notes",
        ("--use", "file_search,file_read"),
        "In which year was the footbridge rebuilt?",
        lambda answer, _folder: "1987" in answer,
    ),
    Demo(
        "a summary of one note, written to a file",
        ("--use", "file_read", "--tools", str(EXAMPLES / "summary.py")),
        "Read hut.md, sum it up in one sentence, and save that in summary.txt.",
        _is_one_sentence_about_the_hut,
    ),
)


def play(demo: Demo) -> bool:
    """Run one task in a fresh copy of the notes, show its steps, and say whether it came out right."""
    folder = Path(tempfile.mkdtemp(prefix="surefoot-demo-"))
    shutil.copytree(EXAMPLES / "notes", folder, dirs_exist_ok=True)
    command = [sys.executable, "-m", "surefoot.cli", "run", *demo.arguments, demo.question]
    shown = " ".join(["surefoot", "run", *(f'"{a}"' if " " in a else a for a in command[4:])])
    print(f"\n── {demo.title}\n   {shown}\n", flush=True)
    begun = time.monotonic()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False, env=os.environ)
    answer = done.stdout.strip()
    right = done.returncode == 0 and demo.is_right(answer, folder)
    print(f"   answer: {answer}")
    if (folder / "summary.txt").is_file():
        print(f"   summary.txt: {(folder / 'summary.txt').read_text(encoding='utf-8').strip()}")
    print(f"   {'✓ right' if right else '✗ WRONG'} in {time.monotonic() - begun:.0f} s", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return right


def main() -> int:
    """All three, or those whose numbers are given; a number after `x` repeats them: `demo.py 1 3 x10`."""
    wanted = [int(a) for a in sys.argv[1:] if re.fullmatch(r"[123]", a)] or [1, 2, 3]
    times = next((int(a[1:]) for a in sys.argv[1:] if re.fullmatch(r"x\d+", a)), 1)
    counts = {number: sum(play(DEMOS[number - 1]) for _ in range(times)) for number in wanted}
    print("\n" + "   ".join(f"task {number}: {right} of {times} right" for number, right in counts.items()))
    return 0 if all(right == times for right in counts.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())

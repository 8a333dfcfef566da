"""All programs beside this file, in full, one after the other; what each prints, and one table at the end.

    python tests/faults/in_full.py              hours
    python tests/faults/in_full.py --percent 2  a fiftieth of the kills and schedules

The exit code is 1 if there was any fault.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

PROGRAMS: Sequence[tuple[str, int]] = (  # what is run, and how much of it: {} in the line
    ("kills.py --kills {}", 200),
    ("served.py --kills {}", 50),
    ("scenes.py", 1),
    ("following.py", 1),
    ("trouble.py words", 1),
    ("trouble.py day", 1),
    ("trouble.py day --postgres", 1),
    ("trouble.py schedules --count {}", 200),
    ("trouble.py schedules --postgres --count {}", 300),
)
MOST_S = 20_000


def main(arguments: Sequence[str]) -> int:
    """Run them; 1 if any has found a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--percent", type=int, default=100)
    given = parser.parse_args(arguments)
    rows: list[tuple[str, float, int]] = []
    for line, count in PROGRAMS:
        told = line.format(max(1, count * given.percent // 100))
        print(f"== {told}", flush=True)
        began, (program, *options) = time.monotonic(), told.split()
        command = [sys.executable, str(Path(__file__).with_name(program)), *options]
        done = subprocess.run(command, timeout=MOST_S, check=False)
        rows.append((told, time.monotonic() - began, done.returncode))
    print()
    for told, seconds, code in rows:
        print(f"{told:46}{seconds:8.0f} s  {'faults' if code else 'no faults'}")
    return 1 if any(code for _, _, code in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

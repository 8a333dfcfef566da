"""What stands behind each claim: one command a figure, measured again, and kept with commit, machine, date and load.

    python benchmarks/evidence.py                # the short parts
    python benchmarks/evidence.py --long         # all parts; hours
    python benchmarks/evidence.py gate crash     # these
    python benchmarks/evidence.py --page         # only writes the page again

Each part becomes `docs/evidence/PART.json`, and the tables of `docs/evidence.md` are made from these. A part that needs
what is not there says so and is left as it was. Ends with 1 when a command failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE = ROOT / "docs" / "evidence", ROOT / "docs" / "evidence.md"
BENCH = Path(os.environ.get("SUREFOOT_BENCHES", ROOT.parent / "shared" / "bench"))


@dataclass(frozen=True, slots=True)
class Part:
    """A row of `evidence.toml`."""

    claim: str
    commands: Sequence[str]
    needs: Sequence[str] = ()
    long: bool = False
    keep: str = r"\S"


PARTS: Mapping[str, Part] = {
    name: Part(**row) for name, row in tomllib.loads((ROOT / "benchmarks" / "evidence.toml").read_text()).items()
}


@dataclass(slots=True)
class Measured:
    """What came of a part, and where and when."""

    part: str
    commit: str
    date: str
    machine: str
    load: list[float] = field(default_factory=list[float])
    results: list[dict[str, object]] = field(default_factory=list[dict[str, object]])


def machine() -> str:
    """Cores, processor, memory, system and Python."""
    cpuinfo = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kind = named[1] if named else platform.machine()
    return f"{os.cpu_count()} cores ({kind}), {gib:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def missing(part: Part) -> list[str]:
    """What a part needs and does not find."""
    there = {one: Path(placed(one)).exists() if "/" in one else find_spec(one) is not None for one in part.needs}
    return [one for one, is_there in there.items() if not is_there]


def placed(text: str) -> str:
    """With the folder of the benches."""
    return text.replace("BENCH", str(BENCH))


def made(name: str, part: Part) -> Iterator[Measured]:
    """Run the commands of a part, one after the other; what came of them so far, after each."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ".", ":!docs"], check=False).returncode
    commit = commit.strip() + ("-dirty" if changed else "")  # the pages that it writes itself do not count
    found = Measured(name, commit, time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), machine(), [os.getloadavg()[0]])
    for command in part.commands:
        *extra, program = command.split(" ", 1) if "=" in command.split(" ", 1)[0] else [command]
        environment = {**os.environ, **dict(one.split("=", 1) for one in extra)}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        print(f"{name}: {command}", flush=True)
        begun = time.monotonic()
        run = [sys.executable, *placed(program).split()]
        done = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        told = done.stdout + (done.stderr if done.returncode else "")
        lines = [
            line.rstrip()
            for line in told.replace(f"{ROOT}/", "").replace(str(BENCH), "BENCH").splitlines()
            if re.search(part.keep, line)
        ]
        result = {"command": command, "seconds": round(time.monotonic() - begun), "exit": done.returncode}
        found.results.append({**result, "output": lines})
        found.load[1:] = [os.getloadavg()[0]]
        yield found


def shown(name: str) -> str:
    """A part as the page has it."""
    part, path = PARTS[name], KEPT / f"{name}.json"
    head = f"## {name}\n{part.claim}"
    if not path.exists():
        commands = "\n".join(f"    {typed(command)}" for command in part.commands)
        return f"{head} Not measured for this version yet:\n\n{commands}"
    kept = Measured(**json.loads(path.read_text(encoding="utf-8")))
    texts = [head]
    for one in kept.results:
        lines = [str(line) for line in list(one["output"] if isinstance(one["output"], list) else [])]
        body = "\n".join(lines) if all(line.startswith(("|", "###")) for line in lines) else fenced(lines)
        ended = "" if one["exit"] == 0 else f", **ended with {one['exit']}**"
        texts.append(f"`{typed(str(one['command']))}` ({one['seconds']} s{ended})\n\n{body}")
    left = [typed(command) for command in part.commands if command not in [one["command"] for one in kept.results]]
    texts += [f"Not measured for this version yet: `{command}`" for command in left]
    load = " to ".join(f"{one:.1f}" for one in kept.load)
    texts.append(f"*{kept.commit}, {kept.date}, load {load}; {kept.machine}.*")
    return "\n\n".join(texts)


def typed(command: str) -> str:
    """As it is typed in a shell."""
    return re.sub(r"^(\S+=\S+ )?", r"\1python ", command, count=1)


def fenced(lines: list[str]) -> str:
    """As they were printed."""
    return "\n".join(["```text", *lines, "```"])


def write_page() -> None:
    """The page's own words stand above the mark; all below it is made."""
    words = PAGE.read_text(encoding="utf-8").partition("<!-- made by benchmarks/evidence.py -->")
    body = "\n\n".join(shown(name) for name in PARTS).replace("\n### ", "\n\n### ")
    body = re.sub(r"(### .*)\n\|", r"\1\n\n|", body)
    PAGE.write_text(f"{words[0]}{words[1]}\n\n{body}\n", encoding="utf-8")


def main() -> int:
    """Measure what was chosen and write the page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    options.add_argument("--long", action="store_true")
    options.add_argument("--page", action="store_true")
    given = options.parse_args()
    chosen = given.parts or [name for name, part in PARTS.items() if given.long or not part.long]
    failed = False
    for name in () if given.page else chosen:
        if wanted := missing(PARTS[name]):
            print(f"{name}: left as it was; it needs {', '.join(placed(one) for one in wanted)}", file=sys.stderr)
            continue
        KEPT.mkdir(exist_ok=True)
        for found in made(name, PARTS[name]):
            failed = failed or any(one["exit"] for one in found.results)
            told = json.dumps(asdict(found), indent=1, ensure_ascii=False)
            (KEPT / f"{name}.json").write_text(f"{told}\n", encoding="utf-8")
    write_page()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""What a step costs: surefoot in the agent-framework overhead bench, in the same rounds as its floors and a peer.

The bench (a mock server, the scenarios S1 to S8, floors and adapters) is the folder `overhead` of those that stand
beside the project, or where `SUREFOOT_BENCHES` says. It is copied into a temporary folder, gets the adapter of this
folder and a virtual environment with this checkout, and prints its own tables.
`python benchmarks/overhead.py [--rounds N] [--only s1,s4] [--adapters a,b]`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
BENCH = Path(os.environ.get("SUREFOOT_BENCHES", PROJECT.parent / "shared" / "bench")) / "overhead"
ENVIRONMENTS = Path(os.environ.get("BENCH_VENVS", Path.home() / ".cache" / "surefoot-bench"))
NEEDS = {
    "server": ("uvloop", "httptools", "orjson"),
    "floor": ("aiohttp", "httpx", "orjson", "openai", "uvloop"),
    "pydantic_ai": ("pydantic-ai-slim[openai]",),
    "agent_framework": ("agent-framework-core", "agent-framework-openai"),
    "surefoot": (str(PROJECT),),
}
ADAPTERS = "floor_raw,floor_openai_sdk,pydantic_ai,agent_framework,surefoot"
JOBS = "s1,s2_200,s2_1000,s3,s4,s5,s6,s7,s8"
ANCHOR = "ADAPTERS = {"
ROW = '    "surefoot": ("surefoot_adapter", "surefoot", {}, STD + " s6"),'


def make_environments() -> None:
    """One virtual environment for each side, made once; the one with surefoot is brought up to date every time."""
    for name, packages in NEEDS.items():
        folder = ENVIRONMENTS / name
        python = folder / "bin" / "python"
        is_new = not python.exists()
        if is_new:
            print(f"setting up {name} ...", flush=True)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        if is_new or name == "surefoot":
            force = ("--force-reinstall", "--no-deps") if not is_new else ()
            install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *force, *packages]
            subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
            subprocess.run([python, "-m", "compileall", "-q", folder / "lib"], check=False, stdout=subprocess.DEVNULL)


def main() -> int:
    """Run the jobs and print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--only", default=JOBS)
    options.add_argument("--adapters", default=ADAPTERS)
    options.add_argument("--out", type=Path, default=HERE / "results" / "tables.md")
    chosen = options.parse_args()
    if not (BENCH / "run_bench.py").is_file():
        print(f"there is no overhead bench at {BENCH}; set SUREFOOT_BENCHES to its parent folder", file=sys.stderr)
        return 2
    make_environments()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["BENCH_VENVS"] = str(ENVIRONMENTS)
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder:
        bench = Path(folder) / "overhead"
        shutil.copytree(BENCH, bench, copy_function=shutil.copyfile)
        (bench / "results").mkdir(mode=0o755, exist_ok=True)
        shutil.copyfile(HERE / "surefoot_adapter.py", bench / "adapters" / "surefoot_adapter.py")
        runner = bench / "run_bench.py"
        runner.write_text(runner.read_text().replace(ANCHOR, f"{ANCHOR}\n{ROW}", 1))
        run = [sys.executable, runner, "--rounds", str(chosen.rounds), "--only", chosen.only]
        subprocess.run([*run, "--adapters", chosen.adapters], check=True, env=environment)
        subprocess.run([sys.executable, bench / "summarise.py"], check=True, env=environment)
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bench / "results" / "tables.md", chosen.out)
    print(f"\nwritten to {chosen.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

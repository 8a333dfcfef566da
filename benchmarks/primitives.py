"""What the four primitives cost, each at the size that its specification names: the slowest way that we know of.

Times are CPU time of this process, the median of some rounds after one that warms up; "each" is for one of many steps.
The tools of a profile and the steps of a detector are made anew for every round, so that nothing is known beforehand.
`python benchmarks/primitives.py [--rounds N]` prints the table, and ends with 1 when a row takes longer than asked.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from surefoot.core.select.profile import apply
from surefoot.knowledge.bridge import KnowledgeBridge
from surefoot.knowledge.prefetch.extract import extract
from surefoot.knowledge.store import KnowledgeStore
from surefoot.progress import ProgressTracker
from surefoot.types.knowledge import ConventionsConfig, Knowledge
from surefoot.types.prehydration import PathStyle, PreHydrationConfig
from surefoot.types.progress import StepIterationConfig
from surefoot.types.selection import ToolProfile
from surefoot.types.tools import ToolSpec

TOOLS, FACTS, STEPS, CHARS = 10_000, 100_000, 10_000, 1_000_000
HERE = "src/api/v2/handlers"

Prepare = Callable[[], Callable[[], object]]
"""Makes what is needed, and gives what is to be timed."""


@dataclass(frozen=True)
class Row:
    """One measurement. `asked_ms` is the most that it may take, `parts` how many steps it is shared between."""

    name: str
    asked_ms: float
    prepare: Prepare
    parts: int = 1

    def once(self) -> float:
        """Milliseconds of CPU time of one round."""
        run = self.prepare()
        gc.collect()
        before = time.process_time()
        run()
        return (time.process_time() - before) * 1000 / self.parts


# --- tool profile

VERBS = ("get", "list", "create", "delete", "search")
PROFILES = {
    "usual patterns": ToolProfile(
        include=[
            *(f"server{at}_*" for at in range(8)),
            *("*_get_*", "*search*", "*_create_1*", "*99", "server1?_list_*", "server2*_5"),
        ],
        exclude=["*_delete_*", "*admin*", "server3_*", "*danger", "shell", "*_secret_*"],
    ),
    "`*a*`": ToolProfile(
        include=[
            f"*{part}*" for part in ("get_1", "get_2", "list_3", "list_4", "create_5", "ver1", "ver2", "_7", "_88")
        ],
        exclude=[f"*{part}*" for part in ("delete", "danger", "admin", "_99", "_66", "x", "yy", "zz", "55", "44", "q")],
    ),
    "`a*b` and `*a*b*`": ToolProfile(
        include=[*(f"server{at}*_{at}" for at in range(10)), *(f"*get*{at}*" for at in range(10))]
    ),
}
HOSTILE_PROFILES = {
    "`*a?b*`": ToolProfile(include=[f"*{a}?{b}*" for a in "abcdegilst" for b in "et"]),
}


def profile(settings: ToolProfile, mark: str = "") -> Callable[[], object]:
    """A catalogue that nobody has seen yet, and the profile over it."""
    tools = [
        ToolSpec(f"server{at % 40}_{VERBS[at % 5]}_{mark}{at}", "", {"type": "object"}, effect="read", origin="remote")
        for at in range(TOOLS)
    ]
    return lambda: apply(tools, settings)


# --- conventions

COMMON = ("error", "test", "function", "use", "always")
QUERIES = ("python", "error", " ".join(COMMON), "always use word3 in test", "word7", "nothing")
LEVELS = ("src/api/v2/handlers", "src/api/v2", "src/api", "src", ".")


def facts() -> Iterator[Knowledge]:
    """Facts in some five hundred directories; half of them hold each of the common words."""
    chance = random.Random(4)  # noqa: S311  # the same facts each time
    scopes = (*LEVELS * 3, *(f"pkg{at}/mod{below}" for at in range(50) for below in range(10)))
    for at in range(FACTS):
        words = [f"word{chance.randrange(3000)}" for _ in range(6)]
        words += [word for word in COMMON if chance.random() < 0.5]  # noqa: PLR2004  # half of them
        scope = "" if chance.random() < 0.3 else chance.choice(scopes)  # noqa: PLR2004  # plain knowledge
        language = chance.choice(("python", "rust", "go", "", ""))
        yield Knowledge(f"{' '.join(words)} n{at}", scope=scope, language=language, confidence=chance.random())


def filled(folder: str) -> KnowledgeStore:
    """A store of all the facts."""
    store, given = KnowledgeStore(Path(folder, "knowledge.db")), list(facts())
    for at in range(0, FACTS, 5_000):
        store.add(given[at : at + 5_000], by="the bench")
    return store


def knowledge(folder: str, store: KnowledgeStore) -> Iterator[Row]:
    """Lookups five levels deep, and searches, for words that are rare, frequent and unknown."""
    bridge = KnowledgeBridge(ConventionsConfig(folder))
    bridge.store = store
    for query in QUERIES:
        yield Row(f"conventions, {query!r}", 5, lambda query=query: partial(bridge.retrieve, HERE, query, 5))
        yield Row(f"recall, {query!r}", 20, lambda query=query: partial(store.search, query, 5))


# --- pre-hydration

UNITS = (
    *(
        " /a",
        "./",
        ".",
        "~/",
        "./a.b.c.d.",
        "./a...",
        "/a.py/",
        "/a/b/c/d",
        "./a.py ",
        "./a.py:1:2 ",
        "./中.py ",
        ".a.b ",
    ),
    *("https://e.com/x ", "http://a ", "http://a)))", "http://a@b@c@", "http://[::", "https://", "http://a,"),
    *("#1 ", "#123456 ", "fix #123456 ", "PR #1 ", "pull  request  #", "GH-1 ", "a/b#1 ", "a/", "aaaa/bbbb"),
    *("`", "`a` ", "`` ` ", "``` \n", "~~~\n", "\n", "`\\", '"', '"/a ', "'./a b' ", '"./a b.c" ', "「./文", "«./a b»"),
    *("a", " ", "中", "。", "e\u0301", "😀", "\0", "\\\\", "C:\\a.b ", "-", "@", "(./a", "=./a", "a@b.c "),
    *("./a.py #1 PR #2 https://e.com GH-3 a/b#4 ", "`./a b.py`\n\n", "`a` https://pull  request  #v1.2.3 "),
)
SIGNS = "./~#`'\" ahtps:/.0123\n中()[]@-_GHPRpr,;\\"


def shapes() -> list[str]:
    """A million characters of each shape: all of the above, some of them in turn, and some by chance."""
    chance = random.Random(7)  # noqa: S311  # the same texts each time
    mixed = ["".join(chance.sample(UNITS, chance.randint(2, 4))) for _ in range(40)]
    noise = ["".join(chance.choices(SIGNS, k=chance.choice((2, 4, 10, 50, 1000)))) for _ in range(40)]
    return [*UNITS, *mixed, *noise]


def extraction(unit: str, style: PathStyle) -> Callable[[], object]:
    """References of a text that repeats one shape, where no file exists."""
    text = (unit * (CHARS // len(unit) + 1))[:CHARS]
    return lambda: extract([text], PreHydrationConfig(path_style=style), exists=lambda _path: False)


# --- progress


def errors(of_one_step: bool) -> Callable[[], object]:
    """Errors that are all alike but for their numbers."""
    tracker = ProgressTracker(StepIterationConfig(max_reattempts_per_step=2 * STEPS))
    texts = [f"10:{at % 60:02}:00 request {at:09x}f failed: no row {at} in table" for at in range(STEPS)]

    def run() -> None:
        for at, text in enumerate(texts):
            tracker.record_and_check("step" if of_one_step else f"step {at}", text)

    return run


def turns() -> Callable[[], object]:
    """Calls that come round in a period just too long to be a circle."""
    tracker = ProgressTracker()

    def run() -> None:
        for at in range(STEPS):
            tracker.observe("step", {"name": "look", "n": at % 7}, ok=True, result=f"row {at % 7}")

    return run


def measured(row: Row, rounds: int) -> float:
    """The median of so many rounds, in milliseconds."""
    row.once()
    return statistics.median(row.once() for _ in range(rounds))


def rows(folder: str, store: KnowledgeStore) -> Iterator[Row]:
    """All that is measured on its own; the shapes of text are told together."""
    for name, settings in PROFILES.items():
        yield Row(f"profile, {TOOLS:,} tools, 20 {name}", 15, partial(profile, settings))
    for name, settings in HOSTILE_PROFILES.items():
        yield Row(f"profile, {TOOLS:,} tools, 20 {name}", 50, partial(profile, settings))
    yield Row(f"profile, {TOOLS:,} tools with accents", 50, partial(profile, PROFILES["usual patterns"], mark="é"))
    yield from knowledge(folder, store)
    yield Row(f"detector, {STEPS:,} errors of one step, each", 0.1, partial(errors, of_one_step=True), STEPS)
    yield Row(f"detector, {STEPS:,} steps with an error, each", 0.1, partial(errors, of_one_step=False), STEPS)
    yield Row(f"detector, {STEPS:,} turns, each", 0.1, turns, STEPS)


def slowest_shapes(rounds: int) -> Iterator[tuple[float, Row]]:
    """The slowest shapes of text, both styles of path; all are tried once, and those that were slow again."""
    tried = [
        Row(f"extraction, {CHARS // 1_000_000} MB of {unit[:20]!r} ({style})", 200, partial(extraction, unit, style))
        for unit in shapes()
        for style in ("posix", "windows")
    ]
    slow = sorted(((row.once(), at) for at, row in enumerate(tried)), reverse=True)[:5]
    for _, at in slow:
        yield measured(tried[at], rounds), tried[at]


def main() -> int:
    """Print the table; 1 when something takes longer than asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--rounds", type=int, default=15)
    rounds: int = options.parse_args().rounds
    sys.stdout.write("| what | asked | measured |\n|---|---:|---:|\n")
    late = 0
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder, closing(filled(folder)) as store:
        found = ((measured(row, rounds), row) for row in rows(folder, store))
        for took, row in chain(found, slowest_shapes(rounds)):
            late += took > row.asked_ms
            sys.stdout.write(f"| {row.name.replace('|', chr(92) + '|')} | {row.asked_ms:g} ms | {took:.3g} ms |\n")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())

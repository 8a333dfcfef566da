"""The plan of the house in figures: what is large, knotted or scattered, and how each is counted.

`python tests/house.py` prints the table (`make house`). `test_house.py` holds the figures to ceilings that only go
down. Everything but the traces (`house_traces.py`) is read from the source.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from house_traces import traces

SOURCE = Path(__file__).parent.parent / "src" / "surefoot"
TESTS = Path(__file__).parent
APART = ("evals",)  # rooms that are not counted: measuring tools, not the runtime

Graph = Mapping[str, frozenset[str]]

_SMALL = 120
_PARTICIPLE = re.compile(r".+(?:ed|ing)$")
_IRREGULAR = frozenset({"told", "shown", "given_up", "said", "made", "known", "held", "held_text", "written", "begun"})
_TALK = _IRREGULAR | {"asked", "heard", "gone", "taken", "given", "seen", "kept", "found", "noted", "meant"}
"""What a function is not named by alone: such a name says neither what it returns nor what it does."""
_NOUNS = frozenset({"embed", "feed", "need", "seed", "speed", "string", "thing"})
_MOST_ENTERED = {
    "a plain tool call": (250, 45),
    "a verdict of the gate": (70, 10),
    "a failed step to its retry": (150, 25),
    "a text reply": (50, 8),
}
_MAY_SHARE = frozenset({"__init__", "__main__"})


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the source: its name below `surefoot`, its text, its syntax tree, and all that stands in that."""

    name: str
    text: str
    tree: ast.Module
    nodes: Sequence[ast.AST]

    @property
    def room(self) -> str:
        """The folder it stands in, sub-folders of `core` apart; of a file at the top, its own name."""
        parts = self.name.removesuffix(".py").split("/")
        return "/".join(parts[:-1][:2]) if parts[0] == "core" else parts[0]

    @property
    def stem(self) -> str:
        """The last part of its name."""
        return self.name.rpartition("/")[2].removesuffix(".py")


@cache
def sources() -> Mapping[str, Module]:
    """All modules by their dotted names."""
    found: dict[str, Module] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text(encoding="utf-8")
        dotted = ".".join(("surefoot", *name.removesuffix(".py").split("/"))).removesuffix(".__init__")
        found[dotted] = Module(name, text, tree := ast.parse(text), tuple(ast.walk(tree)))
    return found


@cache
def modules() -> Mapping[str, Module]:
    """The same, those apart left out."""
    return {dotted: module for dotted, module in sources().items() if not module.name.startswith(APART)}


@cache
def imports() -> Graph:
    """Which modules each module imports, late imports inside functions too."""
    known = modules()

    def imported(node: ast.AST) -> Iterable[str]:
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                inner = [f"{module}.{alias.name}" for alias in names]
                yield from (name if name in known else module for name in inner)
            case _:
                pass

    return {
        name: frozenset(one for node in module.nodes for one in imported(node) if one in known) - {name}
        for name, module in known.items()
    }


def rooms(graph: Graph) -> Graph:
    """The same arrows between rooms."""
    of = {name: module.room for name, module in modules().items()}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, targets in graph.items():
        found[of[name]] |= {of[target] for target in targets} - {of[name]}
    return {room: frozenset(targets) for room, targets in found.items()}


def knots(graph: Graph) -> list[frozenset[str]]:
    """The groups of more than one that import each other in a circle. Tarjan, 1972."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in graph.get(name, frozenset()):
            if target not in order:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == order[name]:
            at = stack.index(name)
            found.append(frozenset(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in order:
            visit(name)
    return [group for group in found if len(group) > 1]


def floors(graph: Graph) -> int:
    """How many stand on each other in the longest chain; a knot counts as one."""
    group = {name: knot for knot in knots(graph) for name in knot}

    @cache
    def height(knot: frozenset[str]) -> int:
        below = {group.get(target, frozenset({target})) for name in knot for target in graph.get(name, ())} - {knot}
        return 1 + max((height(one) for one in below), default=0)

    return max((height(group.get(name, frozenset({name}))) for name in graph), default=0)


def code_lines(module: Module) -> int:
    """Lines that hold code: not blank, not only a comment, not in a docstring."""
    told: set[int] = set()
    lines = ["", *module.text.splitlines()]
    held = {at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")}
    for node in module.nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                told |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case ast.Constant(value=str()) | ast.JoinedStr() if '"""' in lines[node.lineno]:
                held |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case _:
                pass
    return len(held - told)


def private_functions() -> tuple[list[str], int]:
    """The private functions and methods that one place names, and how many there are in all."""
    found: list[str] = []
    total = 0
    for module in modules().values():
        uses = Counter(node.id for node in module.nodes if isinstance(node, ast.Name))
        uses.update(node.attr for node in module.nodes if isinstance(node, ast.Attribute))
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and re.match(r"_[^_]", node.name):
                total += 1
                if uses[node.name] == 1:
                    found.append(f"{module.name}:{node.name}")
    return found, total


def sole_importers() -> list[str]:
    """Modules of at most 120 lines that only one other imports."""
    importers = Counter(target for targets in imports().values() for target in targets)
    return [
        module.name
        for name, module in modules().items()
        if importers[name] == 1 and len(module.text.splitlines()) <= _SMALL and module.stem not in _MAY_SHARE
    ]


def participles() -> list[str]:
    """Modules whose name is a participle or a gerund."""
    return [
        module.name
        for module in modules().values()
        if module.stem not in _NOUNS and (_PARTICIPLE.match(module.stem) or module.stem in _IRREGULAR)
    ]


def talk() -> list[str]:
    """Functions and methods whose whole name is a word of `_TALK`; a property may have one."""
    return [
        f"{module.name}:{node.name}"
        for module in modules().values()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in _TALK
        if not any("property" in ast.unparse(one) for one in node.decorator_list)
    ]


def shared_stems() -> list[str]:
    """Names that modules in two or more rooms bear; the vocabulary beside a room of its name does not count."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules().values():
        if module.stem not in _MAY_SHARE and module.room not in ("types", "testing", "telling"):
            found[module.stem].add(module.name)
    return [
        " ".join(sorted(names)) for _, names in sorted(found.items()) if len({n.rpartition("/")[0] for n in names}) > 1
    ]


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table: what is counted, what it is now, and what it should become."""

    name: str
    now: int
    aim: int
    offenders: Sequence[str] = ()


def figures() -> list[Figure]:
    """All that is read from the source."""
    graph = imports()
    texts = [module.text for module in modules().values()]
    once, private = private_functions()
    core = {name: targets for name, targets in graph.items() if name.startswith("surefoot.core")}
    inside = {name: frozenset(one for one in targets if one in core) for name, targets in core.items()}
    room_knots, module_knots = knots(rooms(graph)), knots(graph)
    tests = [path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")]
    walks = traces()
    return [
        Figure("lines of src", sum(len(text.splitlines()) for text in texts), 36_000),
        Figure("lines of code in src", sum(map(code_lines, modules().values())), 26_500),
        Figure("modules", len(texts), 180),
        Figure("rooms in knots", sum(map(len, room_knots)), 0, [" ".join(sorted(one)) for one in room_knots]),
        Figure("modules in knots", sum(map(len, module_knots)), 0, [" ".join(sorted(one)) for one in module_knots]),
        Figure("floors of rooms in core", floors({r: t for r, t in rooms(core).items() if r.startswith("core")}), 8),
        Figure("floors of modules in core", floors(inside), 15),
        Figure(f"private functions called once, of {private}", len(once), 300, once),
        Figure("small modules with one importer", len(one := sole_importers()), 15, one),
        Figure("modules named by a participle", len(one := participles()), 0, one),
        Figure("functions named by talk alone", len(one := talk()), 0, one),
        Figure("names in two or more rooms", len(one := shared_stems()), 8, one),
        Figure("lines of tests", sum(len(text.splitlines()) for text in tests), 32_000),
        *(
            Figure(f"functions entered by {name}", trace.functions, _MOST_ENTERED[name][0])
            for name, trace in walks.items()
        ),
        *(Figure(f"files entered by {name}", trace.files, _MOST_ENTERED[name][1]) for name, trace in walks.items()),
    ]


def main() -> None:
    """Print the table; with `-v`, also what each figure counts where that is a list."""
    print(f"{'':48} {'now':>7} {'aim':>7}")
    for figure in figures():
        print(f"{figure.name:48} {figure.now:7,} {figure.aim:7,}")
        for offender in figure.offenders if "-v" in sys.argv[1:] else ():
            print(f"    {offender}")


if __name__ == "__main__":
    main()

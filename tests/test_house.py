"""The plan of the house, kept: who may import whom, how large a thing may be, and what the core must never know."""

import ast
from pathlib import Path

import pytest

import surefoot

SOURCE = Path(__file__).parent.parent / "src" / "surefoot"
MODULES = sorted(SOURCE.rglob("*.py"))

CORE = "types core core/parse core/gate core/plan core/select core/reasoners"
HANDS = "models tools knowledge journal"
MAY_KNOW: dict[str, str] = {  # room -> rooms it may import, beside itself; sub-rooms of core have their own rows
    "types": "",
    "prompts": "",
    "core/parse": "types",
    "core/gate": "types core core/select",
    "core/select": "types core",
    "core/plan": "types core core/reasoners core/parse core/gate core/select",
    "core/reasoners": "types core core/parse core/gate",
    "core": "types core/parse core/gate core/plan core/select core/reasoners",
    **dict.fromkeys(HANDS.split(), "types core core/parse"),
    "progress": "types core",
    "runtime": f"{CORE} prompts {HANDS}",
    "run": CORE,
    "agent": f"{CORE} prompts {HANDS} runtime run",
    "service": f"{CORE} prompts {HANDS} runtime run agent",
    "memory": f"{CORE} run",
    "reasoners": f"{CORE} prompts {HANDS} runtime run agent service memory",
    "testing": f"{CORE} prompts {HANDS} runtime run agent progress",
    "cli": f"{CORE} prompts {HANDS} runtime run agent",
    "evals": f"{CORE} prompts {HANDS} runtime run agent testing",
}
FRONT_DOOR = "surefoot"

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES_OF = {"runtime/drive.py": 150}

NOT_IN_CORE = {"asyncio", "time", "random", "os", "pathlib", "datetime", "threading", "socket", "sqlite3"}
MOST_NAMES_AT_THE_DOOR = 25


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room_of(name: str) -> str:
    parts = name.removesuffix(".py").split("/")
    if parts[0] == "core" and len(parts) > 2:
        return f"core/{parts[1]}"
    return parts[0] if len(parts) > 1 or parts[0] != "__init__" else FRONT_DOOR


def room_of_module(dotted: str) -> str:
    """The room of `surefoot.a.b.c`; the front door for `surefoot` itself."""
    parts = dotted.split(".")[1:]
    if not parts:
        return FRONT_DOOR
    if parts[0] == "core" and len(parts) > 1 and (SOURCE / "core" / parts[1]).is_dir():
        return f"core/{parts[1]}"
    return parts[0]


def imports_of(tree: ast.Module) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports inside the package are absolute"
            module = node.module or ""
            found += [f"{module}.{a.name}" if module in ("surefoot", "surefoot.core") else module for a in node.names]
    return found


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_room_knows_only_the_rooms_below_it(path: Path) -> None:
    room = room_of(name_of(path))
    if room == FRONT_DOOR:
        return
    known = {room, *MAY_KNOW[room].split()}
    imported = {room_of_module(name) for name in imports_of(tree_of(path)) if name.split(".")[0] == "surefoot"}
    assert imported <= known, f"{name_of(path)} imports {sorted(imported - known)}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_for_and_keeps_its_size(path: Path) -> None:
    tree = tree_of(path)
    docstring = ast.get_docstring(tree)
    assert docstring, "a module's first line says what it is for"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF.get(name_of(path), MOST_LINES)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MOST_LINES_OF_A_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", [p for p in MODULES if room_of(name_of(p)).startswith("core")], ids=name_of)
def test_core_is_pure(path: Path) -> None:
    tree = tree_of(path)
    assert not {name.split(".")[0] for name in imports_of(tree)} & NOT_IN_CORE
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith)
        assert not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "print")
        )


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=name_of)
def test_an_init_holds_names_and_no_logic(path: Path) -> None:
    if name_of(path) == "__init__.py":
        return  # the front door is lazy: its one function finds names
    for node in tree_of(path).body:
        assert isinstance(node, ast.Expr | ast.Import | ast.ImportFrom | ast.Assign), ast.dump(node)[:80]


def test_the_front_door_has_few_names_and_each_opens() -> None:
    assert len(surefoot.__all__) <= MOST_NAMES_AT_THE_DOOR
    for name in surefoot.__all__:
        assert getattr(surefoot, name) is not None


def test_nothing_unfinished_stands_in_the_source() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for word in ("TODO", "FIXME", "XXX", "NotImplementedError", "pragma: no cover"):
            assert word not in text, f"{name_of(path)} holds {word}"


def test_the_license_is_where_it_should_be() -> None:
    root = SOURCE.parent.parent
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "AGENTS.md", "Makefile", ".ci/run", "constraints.txt"):
        assert (root / name).is_file(), name

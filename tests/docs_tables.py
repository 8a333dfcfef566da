"""The tables of settings in the docs, made from the settings. `python tests/docs_tables.py` writes them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

from surefoot.types.config import TABLES
from surefoot.types.prehydration import BUILT_IN_RESOLVERS
from surefoot.types.settings import defaults, rows

ROOT = Path(__file__).parent.parent
DOCS, SOURCE, AGENTS = ROOT / "docs", ROOT / "src/surefoot", ROOT / "AGENTS.md"
PAGES = dict.fromkeys(TABLES, "configuration.md") | {"guard": "guard.md", "plan": "planning.md"}
IN_WORDS = {"path_style": "this system's", "root": "the current folder"}


def shown(name: str, default: object) -> str:
    """A default as the page has it."""
    if name in IN_WORDS:
        return IN_WORDS[name]
    if default is None:
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int | float):
        return f"{default:g}" if default < 10**5 else str(int(default))
    if default == BUILT_IN_RESOLVERS:
        return ", ".join(f"`{kind}`: `{tool}`" for kind, tool in BUILT_IN_RESOLVERS.items())
    if isinstance(default, dict):
        return "`{}`"
    if isinstance(default, tuple):
        return ", ".join(f"`{one}`" for one in cast("tuple[str, ...]", default)) or "`[]`"
    return f"`{default}`" if default else '`""`'


def table(name: str) -> str:
    """The rows of one configuration, without those that are configurations of their own."""
    usual = defaults(TABLES[name])
    lines = [
        f"| `{field}` | {shown(field, usual[field])} | {row.meaning} |"
        for field, row in rows(TABLES[name]).items()
        if row.meaning
    ]
    return "\n".join(("| field | default | meaning |", "|---|---|---|", *lines))


def events_of(union: object) -> Iterator[type]:
    """The classes of a union of unions."""
    for member in get_args(union):
        yield from events_of(member) if get_args(member) else (member,)


def modules() -> str:
    """Every module of the package and of its page in a line, by room: the first sentence of what stands at its head."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        room, said = path.parent.relative_to(SOURCE).as_posix(), ast.get_docstring(ast.parse(path.read_text("utf-8")))
        if path.name != "__init__.py" and said:
            sentence = " ".join(said.split("\n\n")[0].split())
            rooms.setdefault(room, []).append(f"- `{path.stem}` {sentence.removesuffix('.')}")
    for path in sorted((SOURCE / "server" / "static").glob("*.js")):
        said = path.read_text("utf-8").partition("\n")[0].removeprefix("// ").removesuffix(".")
        rooms.setdefault("server/static", []).append(f"- `{path.name}` {said}")
    titles = {room: "(at the top)" if room == "." else f"{room}/" for room in rooms}
    return "\n".join(f"**{titles[room]}**\n" + "\n".join(lines) for room, lines in rooms.items())


def pages() -> Iterator[tuple[Path, str]]:
    """Each page, as it should be."""
    text = AGENTS.read_text(encoding="utf-8")
    yield AGENTS, re.sub(r"(?s)(<!-- modules -->\n).*?(\n<!-- end -->)", lambda m: m[1] + modules() + m[2], text)
    for page in dict.fromkeys(PAGES.values()):
        path = DOCS / page
        text = path.read_text(encoding="utf-8")
        for name in TABLES:
            if PAGES[name] == page:
                marked = rf"(?s)(<!-- settings: {name} -->\n).*?(\n<!-- end -->)"
                assert re.search(marked, text), f"{page} has no place for the settings of {name}"
                text = re.sub(marked, lambda found, name=name: found[1] + table(name) + found[2], text)
        yield path, text


if __name__ == "__main__":
    for path, text in pages():
        path.write_text(text, encoding="utf-8")

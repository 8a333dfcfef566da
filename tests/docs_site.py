"""What `make docs` adds to the pages: the reference, made from the code; `llms.txt`; and a look at every link.

A hook of mkdocs. A warning ends the build, since it is strict.
"""

import logging
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

import surefoot
from docs_tables import events_of, table
from surefoot.cli.main import commands
from surefoot.types.config import TABLES
from surefoot.types.events import Event

log = logging.getLogger("mkdocs.hooks.docs_site")

FARTHEST = 3  # steps from the first page to any other

NAMES = {  # page -> its title and the homes of its names
    "agents": ("Agents and runs", "agent run chat delegate reasoners service types.events types.reply"),
    "tools": (
        "Tools",
        "tools types.tools types.ports types.rules types.attachments types.selection core.select core.text",
    ),
    "models": ("Models", "models types.messages types.usage core.parse"),
    "journals": ("Journals", "journal core.loop"),
    "guard": ("The gate", "types.guard runtime.rules"),
    "plans": ("Plans", "types.plan types.progress advice"),
    "configuration": ("Configuration", "types.config types.knowledge types.prehydration runtime.fetch"),
}
FULL_PATH = "\n    options: {show_root_full_path: true}"
CLASSES_ALONE = "\n    options: {show_root_heading: false, filters: ['!^[a-z_]']}"
TESTING = "models cassette journals world"


def names_of(homes: str) -> Iterator[str]:
    """The names of the front door whose modules stand in these."""
    for name in surefoot.__all__:
        home = surefoot._HOME_OF[name]  # pyright: ignore[reportPrivateUsage]  # it alone knows the homes of aliases
        if any(f"{home}.".startswith(f"{one}.") for one in homes.split()):
            yield name


def reference() -> Iterator[tuple[str, str]]:
    """Each page that is made from the code: its path and its text."""
    left = {name for name in surefoot.__all__ if surefoot._HOME_OF[name] != "types.errors"}  # pyright: ignore[reportPrivateUsage]  # as above
    for page, (title, homes) in NAMES.items():
        names = list(names_of(homes))
        left -= set(names)
        api = "\n\n".join(f"::: surefoot.{name}" for name in names)
        yield page, f"# {title}\n\nAll of these are imported from `surefoot`.\n\n{api}\n"
    if left:
        log.warning("no page of the reference has %s; name their homes in `NAMES`", ", ".join(sorted(left)))
    testing = "\n\n".join(f"::: surefoot.testing.{name}{FULL_PATH}" for name in TESTING.split())
    about = "Doubles for tests of your agents ([how to use them](../testing.md))."
    yield "testing", f"# surefoot.testing\n\n{about}\n\n{testing}\n"
    settings = "\n\n".join(f"## {name}\n\n{table(name)}" for name in TABLES).replace("](", "](../")
    about = "The tables of a settings file and the fields of their classes ([how they are used](../configuration.md))."
    yield "settings", f"# Settings\n\n{about}\n\n{settings}\n"
    events = "\n\n".join(f"::: {one.__module__}.{one.__name__}" for one in events_of(Event))
    about = "The records of a journal ([a line for each](../how-it-works.md#the-events-of-a-run))."
    yield "events", f"# Events\n\n{about}\n\n{events}\n"
    yield "errors", f"# Errors\n\n::: surefoot.types.errors{CLASSES_ALONE}\n"
    yield "commands", command_line()


def command_line() -> str:
    """The help of every command, as typer writes it; in the list of its group each has its whole first sentence."""
    found = [get_command(commands())]
    for command in found:
        command.short_help = (command.help or "").split("\n\n")[0].split(". ")[0]
        found += getattr(command, "commands", {}).values()
    context = Context(found[0], info_name="surefoot")
    return get_docs_for_click(obj=found[0], ctx=context, name="surefoot", title="Commands")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, text in reference():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_env(env: Environment, config: MkDocsConfig, files: Files) -> Environment:
    """For readers that are models: `llms.txt` lists the pages, `llms-full.txt` holds those that people wrote."""
    lines, texts = [f"# {config.site_name}", f"> {config.site_description}", "## Pages"], list[str]()
    page = files.src_uris["index.md"].page
    while page is not None:
        text = page.markdown or ""
        lines.append(f"- [{text.partition('# ')[2].partition(chr(10))[0]}]({page.url})")
        if not page.url.startswith("reference/"):
            texts.append(text)
        page = page.next_page
    files.append(File.generated(config, "llms.txt", content="\n".join(lines) + "\n"))
    files.append(File.generated(config, "llms-full.txt", content="\n\n".join(texts)))
    return env


class Links(HTMLParser):
    """The ids of a page, where its links lead, and what a browser fetches to show it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("img", "script", "iframe", "link"):
            self.fetched += [found[name] for name in ("src", "href") if name in found]


def on_post_build(config: MkDocsConfig) -> None:
    """Each link leads somewhere, nothing is fetched from elsewhere, and no page is far from the first."""
    site = Path(config.site_dir).resolve()
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    steps = {site / "index.html": 0}
    for page, distance in (queue := list(steps.items())):
        for link in pages[page].links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in pages[target].ids):
                log.warning("%s links to %s, which is not there", page.relative_to(site), link)
            elif target in pages and target not in steps:
                steps[target] = distance + 1
                queue.append((target, distance + 1))
    for page, found in pages.items():
        if steps.get(page, FARTHEST + 1) > FARTHEST:
            log.warning("%s is more than %d steps from the first page", page.relative_to(site), FARTHEST)
        for address in found.fetched:
            if urlsplit(address).netloc:
                log.warning("%s fetches %s from elsewhere", page.relative_to(site), address)

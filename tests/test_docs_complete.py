"""What can be set, and what can stand in a journal, is named on a page."""

import asyncio
import re
from collections import Counter
from importlib.metadata import entry_points

from docs_pictures import PICTURES, pictures
from docs_tables import DOCS, events_of, pages
from surefoot.cli.options import SETTINGS
from surefoot.models.names import ENTRY_POINTS, PROVIDERS
from surefoot.types.events import Event
from surefoot.types.progress import LimitAction


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert f"\n{heading}" in text, f"{page} has no section {heading!r}"
    return text.split(f"\n{heading}", 1)[1].split("\n#", 1)[0]


def test_the_tables_of_settings_are_those_of_the_code() -> None:
    stale = [path.name for path, text in pages() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run `python tests/docs_tables.py`"


def test_the_pictures_are_those_of_runs_made_now() -> None:
    drawn = asyncio.run(pictures())
    stale = [name for name, text in drawn.items() if (PICTURES / name).read_text(encoding="utf-8") != text]
    assert not stale, "run `python tests/docs_pictures.py`"


def test_each_event_has_its_line() -> None:
    listed = section("how-it-works.md", "## The events of a run").splitlines()
    told = {line.split(" ", 1)[0] for line in listed if line.partition(" ")[2].strip()}
    assert not [event.__name__ for event in events_of(Event) if event.__name__ not in told]


def test_each_name_of_a_provider_is_on_the_page_of_models() -> None:
    table = (DOCS / "models.md").read_text(encoding="utf-8").split("\n## ", 1)[0]
    for name in (*PROVIDERS, *{entry.name for entry in entry_points(group=ENTRY_POINTS)}):
        assert f"`{name}:" in table, name


def test_each_option_that_is_a_setting_is_on_the_page() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert not [option for option in SETTINGS if f"`--{option.replace('_', '-')}" not in page]
    assert "`--on-stuck " + "\\|".join(LimitAction) + "`" in page


def test_the_template_of_the_environment_has_every_variable_that_is_read() -> None:
    root = DOCS.parent
    written = set(re.findall(r"^#([A-Z_]+)=$", (root / ".env.template").read_text(encoding="utf-8"), re.MULTILINE))
    asked = {name for one in PROVIDERS.values() for name in (*one.keys, one.base_url_variable) if name.isupper()}
    source = "\n".join(one.read_text("utf-8") for kind in ("py", "toml") for one in (root / "src").rglob(f"*.{kind}"))
    asked |= set(re.findall(r"\"(SUREFOOT_[A-Z_]+|OPENAI_API_VERSION|HF_ENDPOINT)\"", source))
    assert not asked ^ written


def test_the_navigation_of_the_site_names_each_page_once() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = Counter(re.findall(r"[\w/-]+\.md", navigation))
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert not [page for page in written if named[page] != 1], "each page has one line under `nav:` in mkdocs.yml"
    assert not [page for page in named if page not in written and not page.startswith("reference/")]


def test_a_list_is_one_on_the_site_too() -> None:
    """There a list right below a line of text goes on with its paragraph."""
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^(?![-*+#<!|]|\d+\. | |$).*\n(?:[-*+]|\d+\.) .*", text, re.MULTILINE), page

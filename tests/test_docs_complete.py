"""What can be set, and what can stand in a journal, is named on a page."""

from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import get_args

from surefoot.cli.guarding import FILES
from surefoot.cli.options import OnStuck
from surefoot.models.providers import ENTRY_POINTS, PROVIDERS
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.events import Event
from surefoot.types.guard import GuardConfig
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.planning import PlanConfig
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.profile import ToolProfile
from surefoot.types.progress import LimitAction, StepIterationConfig

DOCS = Path(__file__).parent.parent / "docs"

SECTIONS: dict[type, tuple[str, str]] = {
    Budget: ("configuration.md", "### Budget"),
    LoopConfig: ("configuration.md", "### LoopConfig"),
    ToolProfile: ("configuration.md", "### ToolProfile"),
    StepIterationConfig: ("configuration.md", "### StepIterationConfig"),
    PreHydrationConfig: ("configuration.md", "### PreHydrationConfig"),
    ConventionsConfig: ("configuration.md", "### ConventionsConfig"),
    GuardConfig: ("guard.md", "## Settings"),
    PlanConfig: ("planning.md", "## Configuration"),
}


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert f"\n{heading}" in text, f"{page} has no section {heading!r}"
    return text.split(f"\n{heading}", 1)[1].split("\n#", 1)[0]


def events_of(union: object) -> Iterator[type]:
    for member in get_args(union):
        yield from events_of(member) if get_args(member) else (member,)


def test_each_field_of_a_configuration_is_in_its_table() -> None:
    assert not [
        f"{config.__name__}.{field.name}"
        for config, place in SECTIONS.items()
        for field in fields(config)
        if f"`{field.name}`" not in section(*place)
    ]


def test_each_configuration_that_a_loop_has_is_looked_at() -> None:
    parts = {
        one.name: one.type for one in fields(LoopConfig) if "Config" in str(one.type) or "Profile" in str(one.type)
    }
    assert {str(kind).split(" ")[0] for kind in parts.values()} <= {config.__name__ for config in SECTIONS}


def test_the_files_of_the_gate_are_named() -> None:
    assert all(f"`{name}`" in section("guard.md", "## Settings") for name in FILES)


def test_each_event_has_its_line() -> None:
    listed = section("how-it-works.md", "## The events of a run").splitlines()
    told = {line.split(" ", 1)[0] for line in listed if line.partition(" ")[2].strip()}
    assert not [event.__name__ for event in events_of(Event) if event.__name__ not in told]


def test_each_name_of_a_provider_is_on_the_page_of_models() -> None:
    table = (DOCS / "models.md").read_text(encoding="utf-8").split("\n## ", 1)[0]
    for name in (*PROVIDERS, *{entry.name for entry in entry_points(group=ENTRY_POINTS)}):
        assert f"`{name}:" in table, name


def test_each_way_to_deal_with_a_stuck_step_is_an_option_and_on_the_page() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert [*OnStuck] == [*LimitAction]
    assert "`--on-stuck " + "\\|".join(OnStuck) + "`" in page

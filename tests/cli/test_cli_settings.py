"""What is set about a run from the shell: the settings file, and the options that beat it."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from cli_world import Command, Json, calls, chat_server, offered, run_id_in, says, texts

from cases import cases, rows
from surefoot import Budget, LoopConfig, SqliteJournal, ToolCallContext
from surefoot.cli.agents_file import agents_in
from surefoot.cli.options import Options, changed, config_in, config_of
from surefoot.cli.setup import recipe_from
from surefoot.types.errors import UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.ports import Tool
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.progress import LimitAction, StepIterationConfig
from surefoot.types.selection import ToolProfile

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"

WHOLE = """
[budget]
max_steps = 7
shares = {thinker = 0.4}
[loop]
deliverable = "required"
finish_with_reads = true
output_schema = {type = "object"}
[tool_profile]
include = ["file_*"]
[step_iteration]
on_limit_reached = "Escalate"
[pre_hydration]
custom_patterns = [{ref_type = "jira", pattern = "[A-Z]+-[0-9]+"}]
resolution_tools = {jira = {tool = "look_up", argument = "key"}}
[conventions]
files = ["AGENTS.md"]
store = "facts.db"
[guard]
mode = "observe"
strict = true
max_asks = 3
lexicon = {communicate = ["ping"]}
rules_file = "rules.toml"
cedar_file = "house.cedar"
"""
RULES = '[[rule]]\nid = "no"\nwhen = { effect = "delete" }\nthen = "deny"\n'
PERMIT = "permit(principal, action, resource);"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Where the settings of a folder are, beside the files of its gate."""
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "house.cedar").write_text(PERMIT)
    return tmp_path / "surefoot.toml"


def event_of(run: list[Json], kind: str) -> Json:
    return next(event for event in run if event["type"] == kind)


def test_a_file_sets_each_part_of_the_configuration(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")  # what it names lies beside it
    settings.write_text(WHOLE, encoding="utf-8-sig", newline="\r\n")  # as editors of Windows do
    config = config_in(settings)
    assert config.budget == Budget(max_steps=7, shares={"thinker": 0.4})
    assert (config.deliverable, config.finish_with_reads) == ("required", True)
    assert config.output_schema == {"type": "object"}
    assert config.tool_profile == ToolProfile(include=["file_*"])
    assert config.step_iteration == StepIterationConfig(on_limit_reached=LimitAction.Escalate)
    assert config.pre_hydration is not None
    assert config.pre_hydration.custom_patterns[0].ref_type == "jira"
    made = config.conventions
    assert made is not None
    assert (made.root, made.files, made.store) == (".", ("AGENTS.md",), "facts.db")
    assert config.max_rounds == LoopConfig().max_rounds
    assert (guard := config.guard) is not None
    assert (guard.mode, guard.strict, guard.max_asks, guard.cedar) == ("observe", True, 3, PERMIT)
    assert (guard.lexicon, [one.id for one in guard.rules]) == ({"communicate": ("ping",)}, ["no"])


def test_an_empty_file_is_the_defaults_and_an_empty_table_switches_on(settings: Path) -> None:
    settings.write_text("")
    assert config_in(settings) == LoopConfig()
    settings.write_text("[pre_hydration]\n[tool_profile]\n[guard]\n")
    on = LoopConfig(pre_hydration=PreHydrationConfig(), tool_profile=ToolProfile(), guard=GuardConfig())
    assert config_in(settings) == on


VALUES = ("1979-05-27", "nan", "-1", "1.5", "''", "'x'", "[]", "[1]", "{}", "{a = 1}", "true")


@pytest.mark.parametrize("kind", [Budget, LoopConfig, ToolProfile, StepIterationConfig, PreHydrationConfig])
def test_any_kind_of_value_is_taken_or_refused_by_name(settings: Path, kind: type[Any]) -> None:  # Any: a configuration
    table = re.sub("(?<!^)(?=[A-Z])", "_", kind.__name__.removesuffix("Config")).lower()
    for field, value in product([one.name for one in fields(kind)], VALUES):
        settings.write_text(f"[{table}]\n{field} = {value}\n")
        try:
            config_in(settings)
        except UsageError as error:
            assert str(error).startswith(f"{settings}: [{table}] ")  # noqa: PT017 - some values are taken
            assert field in str(error) or table == "pre_hydration"  # noqa: PT017 - a member of it may be named


def test_a_file_that_is_linked_and_not_there_is_no_default(surefoot: Command, settings: Path) -> None:
    settings.symlink_to("gone.toml")
    assert "No such file or directory; --config '' reads none" in surefoot("run", "x").err
    settings.unlink()
    settings.write_bytes(b"\xff")
    assert "not valid TOML" in surefoot("run", "x").err


@pytest.mark.parametrize("case", rows("cli/options"))
def test_options_beat_the_file_field_by_field(settings: Path, case: Mapping[str, Any]) -> None:
    """`before` and `after` are tables of a file; the options may name files beside it."""
    given: dict[str, Any] = dict(case["options"])
    given |= {name: settings.with_name(given[name]) for name in ("rules", "cedar") if name in given}
    before, reasoner = config_of(settings, case["before"]), case.get("reasoner", "")
    if "refused" in case:
        with pytest.raises(UsageError, match=case["refused"]):
            changed(Options(**given), before, reasoner)
        return
    wanted = None if case["after"] is None else config_of(settings, case["after"])
    assert changed(Options(**given), before, reasoner) == wanted


def test_another_model_has_neither_the_prices_of_the_first_nor_itself_to_fall_back_on() -> None:
    said = Options(model="openai:gpt-4o", fallback=["ollama:q", "ollama:r"], price_in=10.0, price_out=20.0)
    earlier = recipe_from(said)
    again = recipe_from(Options(model="ollama:q"), earlier)
    assert (again.price_in, again.price_out, again.fallback) == (None, None, ("ollama:r",))
    assert recipe_from(Options(), earlier) == earlier
    assert recipe_from(Options(fallback=[""]), earlier).fallback == ()
    kept = replace(earlier, models={"solo": replace(earlier.models["solo"], base_url="http://h/v1")})
    assert recipe_from(Options(base_url="http://u:pw@h/v1"), kept).price_in == 10.0


def test_a_resumed_run_keeps_the_configuration_of_its_journal(surefoot: Command, settings: Path) -> None:
    settings.write_text("[budget]\nmax_steps = 1\n[tool_profile]\ninclude = ['arithmetic']")
    step = calls(("arithmetic", {"expression": "1+1"}))
    with chat_server(step, step, says("2")) as chat:
        run_id = run_id_in(surefoot("run", "--model", chat.model, "x").err.split("\n", 1)[1])
        settings.write_text("[budget]\nmax_steps = 99\nmax_cost_usd = 99.0")
        assert surefoot("resume", run_id).code == 4
        assert len(chat.bodies) == 1
        settings.write_text("not even TOML")
        done = surefoot("resume", run_id, "--max-steps", "4", "--on-stuck", "AnswerNow", "--json")
    resumed = event_of(done.json_lines, "RunResumed")
    assert cast("Json", resumed["config"])["budget"] == {"max_steps": 4, "reserve": 0.1, "shares": {}} | {
        "max_tokens": None,
        "max_cost_usd": None,
        "max_seconds": None,
    }
    assert cast("Json", cast("Json", resumed["config"])["step_iteration"])["on_limit_reached"] == "AnswerNow"
    assert [offered(body) for body in chat.bodies[1:]] == [{"arithmetic"}, {"arithmetic"}]


@pytest.mark.parametrize("named", [(), ("--config", "mine.toml")])
def test_a_run_cannot_write_the_settings_of_the_next(surefoot: Command, tmp_path: Path, named: tuple[str, ...]) -> None:
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / "deep").mkdir()
    paths = ("surefoot.toml", "deep/Surefoot.TOML", *named[1:])
    wanted: list[tuple[str, Json]] = [("file_write", {"path": path, "text": "x"}) for path in paths]
    with chat_server(401, calls(*wanted), says("done")) as chat:
        done = surefoot("run", "--guard", "off", "--model", chat.model, "--write", *named, "x")
        run_id = run_id_in(done.err.rpartition("· ")[2])
        surefoot("resume", run_id)
        for at in range(len(paths)):  # a path that others obey is asked about, and this one is closed all the same
            surefoot("approve", run_id, f"1.{at}", "--by", "Ada", "--yes")
        surefoot("resume", run_id)
    assert [path for path in tmp_path.rglob("*.toml") if path.read_text()] == []
    assert all("closed to tools" in text for text in texts(chat.bodies[2], "tool"))


def test_the_page_shows_a_file_that_can_be_read(settings: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        settings.write_text(block, encoding="utf-8")
        assert config_in(settings) != LoopConfig()


MODEL = "http://127.0.0.1:9/v1#m"
TOOL = "from surefoot import tool\n\n@tool(effect='read')\ndef own() -> str:\n    'Own.'\n    return ''\n"
SAID: dict[str, object] = {
    "model": f"{MODEL}2", "reasoner": "plan", "call_mode": "native", "temperature": 0.5, "seed": 7, "effort": "low",
    "price_in": 1.0, "price_out": 2.0, "fallback": [f"{MODEL}3"], "write": True, "web": True, "no_builtin": True,
    "no_tools": True, "prefetch": True, "tools": ["own.py"], "mcp": ["mcp.json"], "use": ["arithmetic"],
    "instructions": "Be short.", "description": "Reads.",
}  # fmt: skip


@cases("cli/settings")
def test_what_is_wrong_in_an_agents_file_names_the_agent(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "agents.toml").write_text(f"[agents.one]\nmodel = {MODEL!r}\n{lines}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        agents_in(tmp_path / "agents.toml", SqliteJournal(tmp_path / "runs.db"), "runs.db")


def test_no_agent_of_a_file_may_change_what_makes_it_or_another(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(TOOL, encoding="utf-8")
    (tmp_path / "rules.toml").write_text(RULES)
    tables = f"[agents.one]\nmodel = {MODEL!r}\nwrite = true\n[agents.two]\nmodel = {MODEL!r}\ntools = ['own.py']\n"
    (tmp_path / "agents.toml").write_text(f"{tables}[agents.two.guard]\nrules_file = 'rules.toml'\n")
    found = agents_in(tmp_path / "agents.toml", SqliteJournal(tmp_path / "runs.db"), "runs.db", [tmp_path / "tokens"])
    tools = cast("Sequence[Tool]", found["one"].tools)
    (write,) = (tool for tool in tools if tool.spec.name == "file_write")
    for name in ("agents.toml", "rules.toml", "own.py", "tokens"):
        told = asyncio.run(write.call({"path": name, "text": ""}, ToolCallContext("run", "1.0", "key")))
        assert "closed to tools" in told.content


def test_conventions_of_an_agents_file_lie_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    tables = "".join(
        f"[agents.{name}]\nmodel = {MODEL!r}\n[agents.{name}.conventions]\n{root}\n"
        for name, root in (("one", 'root = "ws"'), ("two", ""))
    )
    (tmp_path / "agents.toml").write_text(tables, encoding="utf-8")
    found = agents_in(tmp_path / "agents.toml", SqliteJournal(tmp_path / "runs.db"), "runs.db")
    roots = {name: one.config.conventions and Path(one.config.conventions.root) for name, one in found.items()}
    assert roots == {"one": tmp_path / "ws", "two": tmp_path}


def test_each_field_of_an_agents_file_changes_the_agent(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(TOOL, encoding="utf-8")
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "true"}}}', encoding="utf-8")
    rows = {"plain": {}, "again": {}, **{name: {name: value} for name, value in SAID.items()}}
    tables = (
        f"[agents.{name}]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in ({"model": MODEL} | row).items())
        for name, row in rows.items()
    )
    (tmp_path / "agents.toml").write_text("\n".join(tables), encoding="utf-8-sig", newline="\r\n")
    found = agents_in(tmp_path / "agents.toml", SqliteJournal(tmp_path / "runs.db"), "runs.db")
    told = {name: re.sub("0x[0-9a-f]+", "", repr(replace(agent, name="one"))) for name, agent in found.items()}
    assert [name for name in rows if told[name] == told["plain"]] == ["plain", "again"]

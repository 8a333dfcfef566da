"""Rules in files: whatever cannot be read as it is meant stops what would have used it."""

import re
from pathlib import Path

import pytest

from cases import cases
from surefoot import Agent, GuardConfig, LoopConfig, MemoryJournal, tool
from surefoot.core.text.json import pin_of
from surefoot.runtime.rules import cedar_of, declared_of, rules_of
from surefoot.testing.models import ScriptedModel
from surefoot.types.errors import ConfigError
from surefoot.types.events import ToolsSelected
from surefoot.types.rules import Declared, Rule, ValueTest, When
from surefoot.types.tools import ToolSpec

MAIL = """
[[rule]]
id = "mail-stays-in-house"
when = { effect = "communicate", role = "destination", not_matches = "*@example.org" }
then = "deny"
reason = "Mail goes to our own domain only."
"""
PAY = ToolSpec("pay", "Pays.", {"type": "object"})
RENT = f"""
[[standing]]
id = "rent"
tool = "pay"
pin = "{pin_of(PAY)}"
by = "Ada"
expires_at = 2026-12-31
covers = ["provenance"]
when = [{{ arg = "to", equals = "DE89370400440532013000" }}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rules.toml"


def test_a_file_gives_its_rules_in_order(file: Path) -> None:
    file.write_text(MAIL + RENT, encoding="utf-8-sig", newline="\r\n")
    rules, standing = rules_of(file)
    test = ValueTest(role="destination", not_matches="*@example.org")
    when = When(effect="communicate", value=test)
    assert rules == (Rule("mail-stays-in-house", when, "deny", "Mail goes to our own domain only."),)
    assert [(one.tool, one.expires_at, one.when[0].arg) for one in standing] == [("pay", "2026-12-31", "to")]


@cases("runtime/rules_files")
def test_what_cannot_be_meant_names_the_file_and_the_rule(file: Path, written: str, said: str) -> None:
    file.write_text(written.replace("$MAIL", MAIL).replace("$DEEP", "[" * 5001))
    with pytest.raises(ConfigError, match=re.escape(said)) as told:
        rules_of(file)
    assert str(file) in str(told.value)


def test_a_file_that_is_not_there_or_no_text_is_told(file: Path) -> None:
    for written in (None, b"\xff\xfe"):
        if written is not None:
            file.write_bytes(written)
        with pytest.raises(ConfigError, match="cannot be read"):
            rules_of(file)


def test_a_file_of_policies_is_looked_at_before_it_is_used(file: Path) -> None:
    file.write_text("permit(principal, action, resource);", encoding="utf-8-sig")
    assert cedar_of(file) == "permit(principal, action, resource);"
    for broken in ("permit(principal);", ""):
        file.write_text(broken)
        with pytest.raises(ConfigError, match=re.escape(str(file))):
            cedar_of(file)


def test_a_file_of_rules_says_what_tools_are(file: Path) -> None:
    file.write_text('[tools.look_up]\neffect = "read"\ndirectory = true\nidentity = ["label"]\n')
    declared = declared_of(file)
    assert declared == {"look_up": Declared("read", directory=True, identity=("label",))}
    spec = declared["look_up"].of(ToolSpec("look_up", "", {}, private=True))
    assert spec.effect == "read"
    assert all((spec.declared, spec.idempotent, spec.directory, spec.private))
    read = ToolSpec("ship", "", {}, "read", idempotent=True, private=True)
    written = Declared("write", private=False).of(read)
    assert (written.effect, written.may_repeat, written.private) == ("write", False, False)
    assert Declared("write", idempotent=True).of(read).may_repeat
    assert rules_of(file) == ((), ())


@cases("runtime/rules_files")
def test_a_declaration_that_cannot_be_meant_names_the_tool_and_the_field(file: Path, written: str, said: str) -> None:
    file.write_text(written)
    with pytest.raises(ConfigError, match=said):
        declared_of(file)


@tool(effect="write", roles={"to": "destination"})
async def buy(part: str, count: int, to: str = "") -> str:
    return f"{count} {part} {to}"


@pytest.mark.anyio
@cases("runtime/rules_files")
async def test_a_rule_about_a_tool_that_is_not_here_says_so(written: str, told: str, file: Path) -> None:
    file.write_text(written)  # noqa: ASYNC240  # a small file
    rules, standing = rules_of(file)
    guard = GuardConfig(rules=rules, standing=standing, declared=declared_of(file))
    store = MemoryJournal()
    agent = Agent(ScriptedModel(["Done."]), [buy], config=LoopConfig(guard=guard), journal=store)
    records, _ = await store.read_recorded((await agent.run("Buy.")).id)
    warned = [warning for one in records if isinstance(one.event, ToolsSelected) for warning in one.event.warnings]
    assert warned == [told] * bool(told)


def test_what_is_declared_of_a_parameter_that_a_tool_lacks_is_an_error() -> None:
    def send(to: str) -> str:
        """Send."""
        return to

    wrong = tool(send, roles={"txt": "destination"})
    with pytest.raises(ConfigError, match=r"^roles='txt': tool 'send' has no such parameter, only to$"):
        Agent(ScriptedModel(["Done."]), [wrong]).run_sync("Send.")

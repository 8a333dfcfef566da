"""The gate played call by call: `tests/data/gate/plays.jsonl`, a run a row.

`words` are the user's. A play is [step, tool, arguments, …]: "read" with what the tool gave (and "error", where it
failed), "yes" of the person, "held" where the call is a question or a refusal and with nobody there to ask a refusal;
or the verdict that the call gets, with the rule that made it where that matters. Tools are those of `gate_world`, and
those of `tools.jsonl`.
"""

from dataclasses import replace

from gate_world import TOOLS, Row, Run, rows

from cases import each
from surefoot.core.gate.verdict import verdict_on
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import ToolSpec

SPECS = {spec.name: spec for spec in TOOLS} | {row.pop("tool"): ToolSpec(**row) for row in rows("tools.jsonl")}


@each("row", rows("plays.jsonl"))
def test_a_play_goes_as_written(row: Row) -> None:
    run = Run(row["words"], GuardConfig(**row.get("config", {})), today=row.get("today", "2026-11-22"))
    for step, name, arguments, *given in row["play"]:
        spec = SPECS[name]
        if step == "read":
            run.read(spec, given[0], kind=(*given, "ok")[1], **arguments)
        elif step == "yes":
            run.yes(spec, **arguments)
        else:
            decision, rule, _ = run.judged(spec, **arguments)
            strict = replace(run.known, config=replace(run.known.config, strict=True))
            if step == "held":
                assert decision.kind in ("ask", "deny"), (name, arguments)
                assert verdict_on(strict, spec, arguments, run.started)[0].kind == "deny", (name, arguments)
            else:
                assert f"{decision.kind} {rule}".startswith(step), (name, arguments, rule)

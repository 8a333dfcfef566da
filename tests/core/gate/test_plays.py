"""The gate played call by call: `tests/data/gate/plays`, a run a row.

`words` are the user's. A play is [step, tool, arguments, …]: "read" with what the tool gave (and "error", where it
failed), "yes" of the person, "held" where the call is a question or a refusal and with nobody there to ask a refusal;
or the verdict that the call gets, with the rule that made it where that matters, and "+RULE" for one that asks as well.
Tools are those of `gate_world.SPECS`. A standing rule has the pin of the tool that it names.
"""

from dataclasses import replace

from gate_world import SPECS, Row, Run, rows

from cases import each
from surefoot.core.gate.verdict import verdict_on
from surefoot.core.text.json import pin_of
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.rules import rule_from, standing_from

PINS = {name: pin_of(spec) for name, spec in SPECS.items()}


def config_of(row: Row) -> GuardConfig:
    fields: Row = dict(row)
    constraints: list[Row] = fields.pop("constraints", [])
    rules: list[Row] = fields.pop("rules", [])
    standing: list[Row] = fields.pop("standing", [])
    limits = (SecurityConstraint(condition=Condition(**one.pop("condition")), **one) for one in map(Row, constraints))
    return GuardConfig(
        constraints=tuple(limits),
        rules=tuple(map(rule_from, rules)),
        standing=tuple(standing_from({**one, "pin": PINS.get(one["pin"], one["pin"])}) for one in standing),
        **fields,
    )


@each("row", rows("plays/*.jsonl"))
def test_a_play_goes_as_written(row: Row) -> None:
    run = Run(row["words"], config_of(row.get("config", {})), today=row.get("today", "2026-11-22"))
    for step, name, arguments, *given in row["play"]:
        spec = SPECS[name]
        if step == "read":
            run.read(spec, given[0], kind=(*given, "ok")[1], **arguments)
            continue
        if step == "yes":
            run.yes(spec, **arguments)
            continue
        decision, rule, grounds = run.judged(spec, **arguments)
        kind, *also = step.split(" +")
        if kind == "held":
            strict = replace(run.known, config=replace(run.known.config, strict=True))
            assert decision.kind in ("ask", "deny"), (name, arguments)
            assert verdict_on(strict, spec, arguments, run.started)[0].kind == "deny", (name, arguments)
        else:
            assert f"{decision.kind} {rule}".startswith(kind), (name, arguments, rule)
        assert {*also} <= {rule, *grounds.also}, (name, arguments, grounds.also)

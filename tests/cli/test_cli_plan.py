"""Runs with a plan in the shell: what is told while they run, `show`, signing, a person's word about steps."""

import io
import json
import os
import re
from pathlib import Path
from typing import cast

import pytest
from cli_world import Command, Json, chat_server, run_id_in, says, typed
from lab_world import REPAIRED, STEPS, lab, plan, planned, resumed

from cases import cases
from surefoot.cli.conduct import answer_on
from surefoot.telling.text import brief_output, brief_parameters


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lab(tmp_path)
    return tmp_path


def plan_lines(out: str) -> list[str]:
    """What `show` says from the plan on, up to how it stands; the run is called 7f2c."""
    lines = re.sub(r"\b[0-9a-f]{12}\b", "7f2c", out).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith(("plan v", "no plan")))
    rest = lines[first:]
    return rest[: rest.index("")] if "" in rest else rest


@pytest.fixture
def asked(surefoot: Command, folder: Path) -> str:
    """The run of the specification's example, up to where the post is asked about."""
    done = planned(surefoot, *REPAIRED, options=("--rules", str(folder / "rules.toml")))
    assert done.code == 6, done.err
    return run_id_in(done.err)


def test_show_tells_the_example_of_the_specification(surefoot: Command, asked: str) -> None:
    shown = surefoot("show", asked)
    assert shown.code == 0
    assert plan_lines(shown.out) == [
        "plan v2 · round 1 · 3 of 4 steps, 75 % · replans 1 · calls 4/500 · model 4/200 · paused (approval)",
        "✓ r  read_csv    log.csv                               n: 31 values, t: 31 values",
        '✓ n  to_numbers  {{r.t}} decimal=","     + round 1     31 values',
        "✓ m  mean        {{n.output}}            attempt 2     12.71",
        '? p  post        #lab text="mean 12.71"  must succeed  surefoot approve 7f2c p.1',
        "tools (all): read_csv, to_numbers, mean, post",
        "v1 → v2 add_remediation_steps: + n before m; m.values = {{n.output}} (mean parameter not_numeric: commas)",
        "refused (step_reflection): repeat_failure m:mean",
    ]
    assert f"surefoot approve {asked} p.1 --by NAME" in shown.out


@pytest.mark.usefixtures("folder")
def test_a_run_without_a_terminal_tells_a_line_for_each_thing(surefoot: Command) -> None:
    done = planned(surefoot, *REPAIRED, says("It is 12.71."))
    assert (done.code, done.out) == (0, "It is 12.71.\n")
    lines = re.sub(r"\(\d+\.\d s\)", "(… s)", done.err).splitlines()
    assert lines[1:-1] == [
        "tools (all): read_csv, to_numbers, mean, post",
        "plan v1 of 3 steps: the mean, posted",
        "  r  read_csv  log.csv",
        "  m  mean  {{r.t}}  after r",
        '  p  post  #lab text="mean {{m.output}}"  after m  must succeed',
        "✓ r  read_csv  log.csv  n: 31 values, t: 31 values  (… s)",
        "✗ m  mean  {{r.t}}  parameter not_numeric: this is no number: 12,5  (… s)",
        "! step_reflection refused: repeat_failure m:mean",
        "~ step m: the whole run is to be reconsidered (asked): the values are texts",
        "~ replan: add_remediation_steps (40 % done, by the engine's count 33 %)",
        "plan v1 → v2 add_remediation_steps: + n before m; m.values = {{n.output}}",
        '✓ n  to_numbers  {{r.t}} decimal=","  + round 1  31 values  (… s)',
        "✓ m  mean  {{n.output}}  attempt 2  12.71  (… s)",
        '✓ p  post  #lab text="mean {{m.output}}"  must succeed  posted to #lab  (… s)',
    ]
    verbose = surefoot("show", run_id_in(done.err), "--verbose").out
    assert '→ read_csv(path="log.csv")  #r.1' in verbose  # what went on inside the steps
    assert '"suggested_action"' in verbose


def test_versions_fold_history_and_picture(surefoot: Command, asked: str, folder: Path) -> None:
    old = surefoot("show", asked, "--plan", "v1").out.splitlines()
    assert old[0].startswith("plan v1 · round 0 · 0 of 3 steps, 0 %")
    assert "as of record" in old[0]
    assert [line.split()[:2] for line in old[1:4]] == [["·", "r"], ["·", "m"], ["·", "p"]]
    latest = surefoot("show", asked, "--plan", "latest").out
    assert plan_lines(latest) == plan_lines(surefoot("show", asked).out)
    missing = surefoot("show", asked, "--plan", "v9")
    assert missing.code == 2
    assert "there is v1, v2" in missing.err

    [told] = surefoot("show", asked, "--json").json_lines
    steps = cast("list[Json]", told["steps"])
    told_of = [(cast("Json", one["step"])["step_id"], one["status"]) for one in steps]
    assert told_of == [*((name, "succeeded") for name in "rnm"), ("p", "waiting")]
    assert [one["what"] for one in cast("list[Json]", told["refusals"])] == ["repeat_failure"]
    assert [one["version"] for one in cast("list[Json]", told["edits"])] == [2]
    assert cast("Json", told["stats"])["replans"] == 1
    assert len(cast("list[Json]", told["results"])) == 4  # each attempt has one
    [before] = surefoot("show", asked, "--json", "--plan", "v1").json_lines
    assert len(cast("list[Json]", before["steps"])) == 3

    assert "## Succeeded steps" in surefoot("show", asked, "--history").out
    assert surefoot("show", asked, "--svg", "plan.svg").code == 0
    drawn = (folder / "plan.svg").read_text(encoding="utf-8")
    assert "发布 the mean" in drawn
    assert "waiting · must succeed" in drawn
    assert surefoot("show", asked, "--svg", "no/such/folder.svg").code == 2


def test_options_of_show_that_contradict_each_other_or_the_run(surefoot: Command, asked: str) -> None:
    assert surefoot("show", asked, "--json", "--history").code == 2
    assert surefoot("show", asked, "--plan", "v1", "--events").code == 2
    with chat_server(says("Hello.")) as chat:
        other = run_id_in(surefoot("run", "--model", chat.model, "Hello").err)
    for option in (("--json",), ("--history",), ("--plan", "v1"), ("--svg", "x.svg")):
        done = surefoot("show", other, *option)
        assert done.code == 2, option


def test_a_call_of_a_step_is_explained_and_approved(surefoot: Command, asked: str) -> None:
    why = surefoot("show", asked, "--why", "p.1").out
    assert why.startswith('post(channel="#lab", text="mean 12.71")')
    assert "decided: ask [user_rules]" in why
    silent = surefoot("approve", asked, "p.1", "--by", "Ada")
    assert "What is posted is looked at first." in silent.out
    assert "/channel: #lab (user)" in silent.out
    assert "the question stays open" in silent.out
    assert surefoot("approve", asked, "p.1", "--by", "Ada", "--yes").code == 0
    done = resumed(surefoot, asked, says("It is posted."))
    assert (done.code, done.out) == (0, "It is posted.\n"), done.err
    assert "ask, by" not in surefoot("show", asked, "--why", "p.1").out
    assert "allow, by Ada" in surefoot("show", asked, "--why", "p.1").out


def test_what_is_said_about_a_plan() -> None:
    def said(text: str) -> str:
        return answer_on(io.StringIO(text), io.StringIO())

    for text, word in (("yes\n", "yes"), ("Y\n", "yes"), ("no\n", "no"), ("", ""), (" \n", ""), ("less\n", "less")):
        assert said(text) == word


@pytest.mark.skipif(os.name == "nt", reason="a terminal of its own is made as Unix makes it")
def test_a_plan_is_reviewed_at_the_terminal(folder: Path) -> None:
    with chat_server(plan(*STEPS), plan(STEPS[0], description="read only"), says("Read.")) as chat:
        given = ("--model", chat.model, "--reasoner", "plan", "--no-builtin", "--tools", "lab.py", "--review-plan")
        done = typed(folder, "只读\nyes\n", "run", *given, "Read log.csv and average t.")
    assert (done.code, done.out) == (0, "Read.\n"), done.err
    assert done.err.count("Run this plan?") == 2
    assert "sent back by" in done.err
    assert "只读" in json.dumps(chat.bodies[1], ensure_ascii=False)


@cases("cli/plan")
def test_a_result_in_a_few_words(text: str, told: str) -> None:
    assert brief_output(text) == told


def test_parameters_in_a_few_words() -> None:
    given = {"path": "log.csv", "sep": ";", "n": 3, "rows": [["x"] * 9] * 9, "name": "小 明"}
    assert brief_parameters(given) == 'log.csv sep=";" n=3 rows=9 values name="小 明"'
    assert brief_parameters({}) == ""

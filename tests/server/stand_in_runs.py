"""Runs for the page, in the shapes of the API: told by hand where they are looked at, counted out where they are many."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "page"
_KEPT: Sequence[str | tuple[str, int]] = json.loads((ROOT / "tests" / "page" / "payloads.json").read_text("utf-8"))
PAYLOADS = [one if isinstance(one, str) else one[0] * one[1] for one in _KEPT]
"""What a hostile text may look like; a long one is kept as a text and how often it stands there."""
NOW = time.time()


def lines(*told: str | tuple[str, str] | tuple[str, str, int]) -> list[Json]:
    """Lines of a telling: a text, or a text with its style and indent."""
    rows = [(one, "", 0) if isinstance(one, str) else (*one, 0)[:3] for one in told]
    return [{"text": text, "style": style, "indent": indent} for text, style, indent in rows]


@dataclass
class Story:
    """One run: its summary's fields, and its rows, of which each is a record."""

    run_id: str
    task: str
    agent: str = "research"
    status: str = "completed"
    standing: str = ""
    reason: str = ""
    answer: str = ""
    parent: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    started_at: float = NOW
    rows: list[Json] = field(default_factory=list[Json])
    waiting: list[Json] = field(default_factory=list[Json])
    whys: dict[str, Json] = field(default_factory=dict[str, Json])
    plans: list[Json] = field(default_factory=list[Json])
    damaged: Json | None = None
    waits_for: str = ""
    change: int = 1
    records: int = 0
    step: int = 0
    step_id: str = ""

    @property
    def total(self) -> int:
        """How many records it has."""
        return self.records or len(self.rows)

    def say(
        self, kind: str, text: str, role: str = "runtime", style: str = "", took: float | None = None, **more: Any
    ) -> Story:
        """One more record with one row; `call`, `opens` (title and lines) and `indent` as the API has them."""
        is_told_already = kind == "reply" and bool(self.rows) and self.rows[-1]["kind"] == "reasoning"
        if kind in ("reasoning", "reply") and not is_told_already:
            self.step += 1
        last = self.rows[-1]["at"] if self.rows else self.started_at
        opens = more.get("opens")
        self.rows.append(
            {
                "seq": len(self.rows), "at": last + (took or 0.4), "kind": kind, "style": style, "indent": more.get("indent", 0),
                "step": self.step, "parts": [{"text": text, "role": role}, *more.get("parts", [])], "call_id": more.get("call", ""),
                "step_id": self.step_id, "took_s": took, "opens": opens and {"title": opens[0], "lines": opens[1]},
            }
        )  # fmt: skip
        return self

    def think(self, text: str, reply: str = "", took: float = 2.3) -> Story:
        """A reply of the model, with what it thought."""
        self.say("reasoning", text, "model", "dim", took, opens=("Reasoning", lines(*text.split(". "))))
        return self.say("reply", reply, "model") if reply else self

    def call(self, call: str, text: str, result: str, took: float = 0.2, *, style: str = "result") -> Story:
        """A call that is allowed, made and answered."""
        name, first, rule = text.split("(", maxsplit=1)[0], result.split("\n", maxsplit=1)[0], "in your words"
        self.say("call", text, "model", "call", call=call, opens=(f"Call {call}", lines((text, "call"))))
        self.say("verdict", f"allowed · {rule}", "runtime", "good", call=call, indent=2)
        full = lines(*[(one, style) for one in result.split("\n")])
        self.whys[call] = why(call, text, "allow", rule)
        opens = (f"Result of {name}", full)
        return self.say("result", first, "tool", style, took, call=call, indent=2, opens=opens)

    def usage(self, at: int) -> Json:
        """Tokens and dollars as of a record."""
        replies = sum(row["kind"] == "reasoning" for row in self.rows[:at]) if self.rows else at // 7
        return {
            "input_tokens": 1840 * replies, "output_tokens": 212 * replies, "cached_tokens": 1210 * replies, "reasoning_tokens": 90 * replies,
            "cost_usd": round(0.0071 * replies, 4), "estimated": False,
        }  # fmt: skip

    def summary(self) -> Json:
        """As the list has it."""
        last = self.rows[-1]["at"] if self.rows else self.started_at + self.total * 0.9
        replies = sum(row["kind"] == "reasoning" for row in self.rows) if self.rows else self.total // 7
        calls = sum(row["kind"] == "call" for row in self.rows) if self.rows else self.total // 7
        return {
            "run_id": self.run_id, "started_at": self.started_at, "changed_at": last, "events": self.total, "status": self.status,
            "standing": self.standing, "reason": self.reason, "task": self.task[:200], "answer": self.answer[:200],
            "models": {"solo": "anthropic/claude-sonnet"}, "requests": replies, "calls": calls, "usage": self.usage(self.total),
            "elapsed_s": last - self.started_at, "parent": self.parent, "outer": "", "agent": self.agent, "labels": dict(self.labels),
            "questions": len(self.waiting), "change": self.change,
        }  # fmt: skip

    def shown(self) -> Json:
        """As the API shows it."""
        return self.summary() | {"waits_for": self.waits_for}

    def state(self, at: int) -> Json:
        """How it stood after `at` records."""
        usage, rows = self.usage(at), self.rows[:at]
        elapsed = (rows[-1]["at"] - self.started_at) if rows else at * 0.9
        waits = self.waiting if at >= self.total else []
        started = {row["call_id"]: row for row in rows if row["kind"] == "call"}
        for row in rows:
            if row["kind"] == "result":
                started.pop(row["call_id"], None)
        tokens = usage["input_tokens"] + usage["output_tokens"]
        return {
            "at": at, "total": self.total, "status": self.status if at >= self.total else "running", "reason": self.reason, "answer": self.answer,
            "step": rows[-1]["step"] if rows else at // 7, "elapsed_s": elapsed, "usage": usage,
            "budget": [
                {"name": "steps", "used": rows[-1]["step"] if rows else at // 7, "limit": 40},
                {"name": "tokens", "used": tokens, "limit": 60_000 if self.rows else 20_000_000},
                {"name": "cost", "used": usage["cost_usd"], "limit": 0.10 if self.rows else 60},
                {"name": "seconds", "used": elapsed, "limit": 600 if self.rows else None},
            ],
            "context": {"used": min(9_100 + 31 * at, 180_000), "window": 200_000},
            "open": [{"id": one, "name": row["parts"][0]["text"].split("(")[0], "arguments": {}, "status": "waiting" if waits else "running", "attempts": 1} for one, row in started.items()],
            "plan": self.plan(at)["version"] if self.plans else 0, "waiting": waits,
        }  # fmt: skip

    def plan(self, at: int) -> Json:
        """The newest version as of a record."""
        held = [one for one in self.plans if one["from"] < at or one is self.plans[0]]
        return held[-1]


POLICIES = ("intent", "provenance", "touch", "foreign", "limits", "conformance", "repetition", "rules")


def why(call: str, text: str, decision: str, rule: str, **more: Any) -> Json:
    """What the gate says of a call."""
    said = more.get("said", {})
    policies: list[Json] = [
        {"name": one, "verdict": said.get(one, ("allow", ""))[0], "reason": said.get(one, ("", ""))[1], "evidence": []}
        for one in POLICIES
    ]
    return {
        "call": call, "name": text.split("(", maxsplit=1)[0], "arguments": more.get("arguments", {}), "digest": more.get("digest", ""), "judged_at": more.get("at", 3),
        "decision": decision, "rule": rule if decision != "allow" else "", "reason": more.get("reason", ""), "policies": policies,
        "values": more.get("values", []), "covers": more.get("covers", []), "asked_before": 0, "later": [], "lines": [],
    }  # fmt: skip


_STATUSES = ("completed", "completed", "completed", "failed", "completed_partial", "stopped", "cancelled", "completed")
_AGENTS = ("research", "ledger", "desk")
_TASKS = (
    "Reconcile the ledger of {} with the bank", "Summarise the incident reports of week {}", "检查第 {} 批发票的付款日期",
    "Draft a reply to ticket {}",
)  # fmt: skip


def may_fit(n: int, asked: Mapping[str, str]) -> bool:
    """Whether run `n` of the many may be what is asked for, found out without making it."""
    text = f"{_TASKS[n % 4].format(n)} batch-{n:06} done.".lower()
    status, agent = asked.get("status"), asked.get("agent")
    return (
        (not status or status == _STATUSES[n % 8])
        and (not agent or agent == _AGENTS[n % 3])
        and asked.get("q", "").lower() in text
    )


def summaries(first: int, last: int) -> Iterator[Json]:
    """Many runs, newest first, made as they are asked for."""
    for n in range(first, last):
        story = Story(
            f"batch-{n:06}", _TASKS[n % 4].format(n), agent=_AGENTS[n % 3], status=_STATUSES[n % 8], started_at=NOW - 7200 - n * 61,
            labels={"batch": str(n // 1000)}, records=40 + n % 90, answer="Done." if n % 8 < 3 else "",
        )  # fmt: skip
        yield story.summary()


def long_row(seq: int) -> Json:
    """A row of the run with 35,000 records."""
    kind = ("reasoning", "reply", "call", "verdict", "result", "result", "select")[seq % 7]
    step = seq // 7 + 1
    text = {
        "reasoning": f"Ledger page {step} has entries that the bank does not know; I compare amounts and dates before I name one",
        "reply": f"Checking page {step}.", "call": f'read_page(book="2026", page={step})', "verdict": "allowed · in your words",
        "select": "5 tools offered of 31", "result": f"{step * 37 % 900 + 12} entries, sum {step * 1931 % 90000 / 100:,.2f} EUR",
    }[kind]  # fmt: skip
    style = {"reasoning": "dim", "call": "call", "verdict": "good", "result": "result", "select": "dim"}.get(kind, "")
    role = "model" if kind in ("reasoning", "reply", "call") else "tool" if kind == "result" else "runtime"
    return {
        "seq": seq, "at": NOW + seq * 0.9, "kind": kind, "style": style, "indent": 2 if kind in ("verdict", "result") else 0, "step": step,
        "parts": [{"text": text, "role": role}], "call_id": f"c{step}" if kind in ("call", "verdict", "result") else "", "step_id": "",
        "took_s": 0.21 if kind == "result" else None, "opens": {"title": f"Record {seq}", "lines": lines(text)},
    }  # fmt: skip

"""The runs that the page is looked at with: plain, repaired, asking, in doubt, damaged, hostile, and long.

A row of `tests/data/page/runs.jsonl` is a run: fields of `Story`; what is `told`, each as a method and its arguments, or
`step` for the step of a plan that follows; and `cut`, after how many rows it is broken off. Times count from now. The
last row is told once for each payload: `§` stands for it, `§60` for its first 60 characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stand_in_runs import DATA, NOW, PAYLOADS, Json, Story, lines

_ROWS: list[Json] = [json.loads(line) for line in (DATA / "runs.jsonl").read_text("utf-8").splitlines()]


def stories() -> Iterator[Story]:
    """All that the list begins with."""
    yield from map(_story, _ROWS[:-1])
    for number, payload in enumerate(PAYLOADS):
        row = _filled(_ROWS[-1], payload)
        yield _story({**row, "run_id": f"x-{number:03}", "started_at": row["started_at"] - number})


def _filled(told: Any, payload: str) -> Any:  # Any: JSON
    match told:
        case str() if told.startswith("§"):
            return payload[: int(told[1:])] if told[1:] else payload
        case list():
            return [_filled(one, payload) for one in told]  # pyright: ignore[reportUnknownVariableType]  # JSON
        case dict():
            return {_filled(key, payload) or "p": _filled(one, payload) for key, one in told.items()}  # pyright: ignore[reportUnknownVariableType]  # JSON
        case _:
            return told


def _story(row: Json) -> Story:
    given = {name: told for name, told in row.items() if name not in ("told", "cut", "waiting", "whys", "plans")}
    story = Story(**given | {"started_at": NOW + row["started_at"]})
    for name, *arguments in row.get("told", ()):
        if name == "step":
            (story.step_id,) = arguments
            continue
        more: Json = arguments.pop() if isinstance(arguments[-1], dict) else {}
        if "opens" in more:
            title, inner = more["opens"]
            more = more | {"opens": (title, _lines(inner))}
        getattr(story, name)(*arguments, **more)
    del story.rows[row.get("cut", len(story.rows)) :]
    for one in row.get("waiting", ()):
        times = {name: NOW + one[name] for name in ("asked_at", "expires_at") if one[name] is not None}
        story.waiting.append(one | times | {"lines": _lines(one["lines"])})
    story.whys |= row.get("whys", {})
    story.plans = row.get("plans", [])
    return story


def _lines(told: list[Any]) -> list[Json]:  # Any: JSON
    return lines(*(one if isinstance(one, str) else tuple(one) for one in told))

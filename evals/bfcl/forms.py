"""`python -m evals.bfcl.forms RESULTS.jsonl`: what each runtime makes of the right calls, in the forms of small models.

In place of a model stands a server that writes the calls of BFCL's answer: once, then, when it is asked again without a
result, as nothing but the calls, and when it has results that it is done. So what is lost is lost by the runtime. The
bare server is left out, since it would need one that reads calls in words.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import orjson
from aiohttp import web

from evals.bfcl.__main__ import play
from evals.bfcl.cases import CATEGORIES, DONE, Case, Made, cases_of, is_right, wire_name
from evals.bfcl.proxy import Count
from evals.bfcl.runtimes import RUNTIMES
from evals.results import Row, keep, rows_in

PLAYED = tuple(name for name in RUNTIMES if name != "bare")
ENDS_BY = "final_answer"
"""The tool by which smolagents is told that all is done."""


def calls_of(case: Case) -> list[Made]:
    """The calls of the answer, of each argument the first value that it may have; what may be left out is left out."""
    return [
        (wire_name(name), {key: _first(values) for key, values in arguments.items() if "" not in values})
        for one in case.answer
        for name, arguments in one.items()
    ]


def _first(values: Sequence[Any]) -> Any:  # Any: JSON of the data set
    return _plain(values[0])


def _plain(value: Any) -> Any:  # Any: the same; in an object each value is a list of those that it may have
    if isinstance(value, dict):
        members = cast("dict[str, list[object]]", value)
        return {key: _first(inner) for key, inner in members.items() if "" not in inner}
    return [_plain(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


def _json(call: Made, *, indent: bool = True) -> str:
    name, arguments = call
    return orjson.dumps({"name": name, "arguments": arguments}, option=orjson.OPT_INDENT_2 if indent else None).decode()


def _fences(calls: Sequence[Made]) -> str:
    return "\n".join(f"```json\n{_json(one)}\n```" for one in calls)


def _python(calls: Sequence[Made]) -> str:
    given = ((name, ", ".join(f"{key}={value!r}" for key, value in arguments.items())) for name, arguments in calls)
    lines = "\n".join(f"{name}({arguments})" for name, arguments in given)
    return f"```python\n{lines}\n```"


def _told(calls: Sequence[Made]) -> str:
    """As the embedded model writes it: the call is spoken about, and the arguments stand alone."""
    name, arguments = calls[0]
    shown = orjson.dumps(arguments, option=orjson.OPT_INDENT_2).decode()
    return f"You can call the `{name}` function with the following arguments:\n```json\n{shown}\n```\nThis will do it."


FORMS: Mapping[str, Callable[[Sequence[Made]], str] | None] = {
    "native": None,
    "tags": lambda calls: "\n".join(f"<tool_call>\n{_json(one, indent=False)}\n</tool_call>" for one in calls),
    "fences": _fences,
    "list": lambda calls: f"```json\n[{', '.join(map(_json, calls))}]\n```",
    "lines": lambda calls: "\n".join(_json(one, indent=False) for one in calls),
    "python": _python,
    "behind words": lambda calls: f"I look that up.\n\n{_fences(calls)}",
    "told first": _told,
}
"""Name of a form -> the words that hold the calls; None where they stand beside the words, as the wire has them."""

_WHEN_ASKED = {"behind words": _fences, "told first": _fences}


def _message(body: Row, case: Case, form: str) -> Row:
    """The reply to a request: a step where one is asked for, else all calls, or that it is done."""
    messages: list[Row] = body["messages"]
    calls, replies = calls_of(case), sum(one["role"] == "assistant" for one in messages)
    if "response_format" in body:
        thought, ending = {"thought": "It is needed."}, {"action": "Final Answer", "action_input": "It is all done."}
        steps = [*({"action": name, "action_input": arguments} for name, arguments in calls), ending]
        return {"content": orjson.dumps(thought | steps[min(replies, len(calls))]).decode()}
    write = FORMS[form]
    last = str(messages[-1].get("content"))
    if replies and DONE in last:
        if ENDS_BY not in str(body.get("tools")):
            return {"content": "It is all right."}
        calls = [(ENDS_BY, {"answer": "It is all right."})]
        write = _WHEN_ASKED.get(form, write)
    elif replies:
        write = _WHEN_ASKED.get(form, write)
    if write is not None:
        return {"content": write(calls)}
    made = (
        {"id": f"call_{replies}_{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate((name, orjson.dumps(given).decode()) for name, given in calls)
    )
    return {"content": "", "tool_calls": [*made]}


@asynccontextmanager
async def writing(case: Case, form: str) -> AsyncGenerator[str]:
    """A server that knows the answer of a case and writes it in a form; gives its base URL."""

    async def reply(request: web.Request) -> web.Response:
        message = {"role": "assistant", **_message(orjson.loads(await request.read()), case, form)}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 1)
        kind = {"id": "1", "object": "chat.completion", "created": 1, "model": "model"}
        return web.json_response({**kind, "choices": [choice], "usage": usage})

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", reply)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def lines(rows: Sequence[Row]) -> list[str]:
    """The results as a table: of each runtime in each form, how many of the cases came out right."""
    told = [f"| {' | '.join(('runtime', *FORMS))} |", "|" + "---|" * (len(FORMS) + 1)]
    for name in PLAYED:
        cells = [name]
        for form in FORMS:
            some = [row["right"] for row in rows if (row["runtime"], row["form"]) == (name, form)]
            cells.append(f"{sum(some)} of {len(some)}" if some else "–")
        told.append(f"| {' | '.join(cells)} |")
    return told


async def main() -> int:
    """Play what has no result in the file yet, a case under all runtimes and forms before the next; print the table."""
    parser = argparse.ArgumentParser(prog="python -m evals.bfcl.forms", description=__doc__)
    parser.add_argument("results", type=Path, help="a file of JSON lines; what is in it is not played again")
    parser.add_argument("--seed", type=int, default=1, help="draws the cases")
    parser.add_argument("--each", type=int, default=15, help="cases of each category that has calls")
    chosen = parser.parse_args()
    rows = rows_in(chosen.results)
    known = {(row["seed"], row["runtime"], row["form"], row["id"]) for row in rows}
    cases = cases_of(chosen.seed, chosen.each, [one for one in CATEGORIES if one != "irrelevance"])
    for case in (one for one in cases if is_right(one, [calls_of(one)])):  # of some its own answer is refused
        for name in PLAYED:
            for form in FORMS if name != "surefoot-schema" else ("native",):  # a step is held to a form of its own
                if (chosen.seed, name, form, case.id) not in known:
                    async with writing(case, form) as base_url:
                        row = await play(name, case, base_url, Count())
                    rows.append(keep(chosen.results, {"seed": chosen.seed, "form": form, **row}))
    sys.stdout.write("\n".join(lines([row for row in rows if row["seed"] == chosen.seed])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

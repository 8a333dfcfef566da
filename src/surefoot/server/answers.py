"""What is answered: values as JSON, with what others wrote made visible; and errors in the form of RFC 9457.

Each kind of problem has a page that says what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import ceil

import orjson
from starlette.responses import Response

from surefoot.core.text.json import plain
from surefoot.telling.text import visible
from surefoot.types.ports import RunSummary

JSON_TYPE = "application/json"
OWN_LABELS = "surefoot."
"""How the labels begin in which the server keeps what it has to know of a run; they are not shown."""
STARTED_BY = f"{OWN_LABELS}by"
TENANT = f"{OWN_LABELS}tenant"


def own_version() -> str:
    """The version of surefoot that is installed; "" where it runs from its sources."""
    try:
        return version("surefoot")
    except PackageNotFoundError:
        return ""


def answer(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None, *, is_replayed: bool = False
) -> Response:
    """A value as JSON. It is never kept by whoever passes it on."""
    replayed = {"Idempotency-Replayed": "true"} if is_replayed else {}
    return Response(dumped(value), status, {"Cache-Control": "no-store", **(headers or {}), **replayed}, JSON_TYPE)


def dumped(value: object) -> bytes:
    """A value of JSON, dataclasses among them, in bytes; the same for equal values."""
    return orjson.dumps(value, default=plain, option=orjson.OPT_SORT_KEYS)


def run_json(run: RunSummary) -> dict[str, object]:
    """A run in one line, as the API tells it. A run in doubt has at least one question."""
    labels = {visible(key): visible(value) for key, value in run.labels.items() if not key.startswith(OWN_LABELS)}
    texts = {name: visible(getattr(run, name)) for name in ("task", "answer", "reason")}
    questions = max(run.questions, 1) if run.standing == "in_doubt" else run.questions
    return {**run.__dict__, **texts, "labels": labels, "questions": questions}


PROBLEM_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: its status, its title, and what to do about it."""

    status: int
    title: str
    remedy: str


KINDS: Mapping[str, Kind] = {
    "no_tools": Kind(400, "Clients cannot send tools", "Leave `tools` and `functions` out: an agent has its own."),
    "unauthorized": Kind(
        401,
        "No valid token",
        "Send `Authorization: Bearer TOKEN`, with the token of the link that it printed, or of `surefoot token new`.",
    ),
    "forbidden": Kind(403, "The token lacks a right", "Use a token with the right that the detail names."),
    "foreign_origin": Kind(
        403, "Not from this page", "If the requesting page is yours, start the server with --origin URL."
    ),
    "not_found": Kind(404, "No such address", "`/openapi.json` lists every address of this server."),
    "no_such_run": Kind(404, "No such run", "A token sees the runs of its tenant and its agents only."),
    "no_such_call": Kind(404, "No such call", "`GET /v1/runs/{run_id}/rows` shows the calls of the run."),
    "no_such_blob": Kind(404, "No such blob", "A run gives only the blobs that its own records refer to."),
    "no_such_word": Kind(404, "No such word", "Take the number from the `Location` header that answered your word."),
    "no_plan": Kind(404, "The run has no plan", "Only runs of the reasoner `plan`, and tasks with steps, have a plan."),
    "no_such_method": Kind(405, "No such method here", "`/openapi.json` lists the methods of every address."),
    "too_slow": Kind(408, "The request took too long", "Send the whole body at once."),
    "not_waiting": Kind(
        409, "Nothing is waiting for this answer", "Somebody may have answered first; the run shows what is waiting."
    ),
    "other_question": Kind(
        409, "The call is waiting for a different answer", "Approve or deny a call; settle one that is in doubt."
    ),
    "changed": Kind(409, "The question has changed", "Read the current question, and answer with its digest."),
    "expired": Kind(409, "The question has expired", "It was refused; resume the run, so that it can ask again."),
    "ended": Kind(409, "The run has ended", "Resume or fork the run, or start a new one."),
    "driven": Kind(409, "The run is being driven", "Cancel the run first, and wait until it has stopped."),
    "has_forks": Kind(409, "Other runs share its records", "Delete the runs that were forked from it first."),
    "journal_damaged": Kind(
        409,
        "The journal of this run is damaged",
        "`surefoot journal verify` says more; `surefoot journal accept` continues without the lost records.",
    ),
    "too_large": Kind(413, "The request is too large", "Send less, or start the server with higher limits."),
    "not_json": Kind(415, "The body must be JSON", "Send the body with `Content-Type: application/json`."),
    "wrong_host": Kind(
        421, "Unknown host name", "Use the address that it printed at its start, or start it with --host-name NAME."
    ),
    "invalid": Kind(422, "The request is not valid", "Fix what `faults` lists; see `/openapi.json`."),
    "agent_unknown": Kind(422, "No such agent", "`GET /v1/agents` lists the agents that are served."),
    "key_reused": Kind(422, "The idempotency key was used before", "Use a new `Idempotency-Key` for each request."),
    "too_many_runs": Kind(429, "Too many runs are queued", "Wait for `Retry-After` seconds, then try again."),
    "too_many_streams": Kind(429, "Too many streams are open", "Close a stream, or wait for `Retry-After` seconds."),
    "too_fast": Kind(429, "Too many requests", "Wait for `Retry-After` seconds, then try again."),
    "header_too_large": Kind(431, "The header is too large", "Send fewer or shorter headers."),
    "internal": Kind(500, "The server failed", "This is a bug in surefoot; the server's log says where it happened."),
    "not_installed": Kind(501, "A component is not installed", "Install what the detail names and restart the server."),
    "draining": Kind(503, "The server is shutting down", "Try again after `Retry-After` seconds."),
    "journal_down": Kind(503, "The journal cannot be reached", "Try again after `Retry-After` seconds."),
}
"""Every problem by its name, which is the end of its `type`."""


class Problem(Exception):
    """A request that cannot be served, as a problem of `KINDS`. `fields` are further members of the answer."""

    def __init__(self, name: str, detail: str = "", *, retry_after_s: float | None = None, **fields: object) -> None:
        super().__init__(detail or name)
        self.name = name
        self.kind = KINDS[name]
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.fields = fields

    def response(self, instance: str) -> Response:
        """The answer to the request for `instance`, which is its path; clients of OpenAI read its `error` alone."""
        detail = self.detail or self.kind.remedy
        error = {"message": detail, "type": self.name, "code": self.name, "param": None}
        told = {
            "type": f"/problems/{self.name}",
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": detail,
            "instance": instance,
            **({"error": error} if instance.startswith("/openai/") else {}),
            **self.fields,
        }
        response = Response(dumped(told), self.kind.status, media_type=PROBLEM_TYPE)
        if self.retry_after_s is not None:
            response.headers["Retry-After"] = str(max(1, ceil(self.retry_after_s)))
        if self.kind.status == KINDS["unauthorized"].status:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response

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
from surefoot.core.text.words import table
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


KINDS: Mapping[str, Kind] = {name: Kind(*told) for name, told in table("problems").items()}
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

"""Values as JSON, and how runs are shown: what was written by models, tools and users is made visible."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import cast

import orjson
from starlette.responses import Response

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


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON. It is never kept by whoever passes it on."""
    return Response(dumped(value), status, {"Cache-Control": "no-store", **(headers or {})}, JSON_TYPE)


def dumped(value: object) -> bytes:
    """A value of JSON, dataclasses among them, in bytes; the same for equal values."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS)


def shown(run: RunSummary) -> dict[str, object]:
    """A run in one line, as the API tells it. A run in doubt has at least one question."""
    labels = {visible(key): visible(value) for key, value in run.labels.items() if not key.startswith(OWN_LABELS)}
    texts = {name: visible(getattr(run, name)) for name in ("task", "answer", "reason")}
    questions = max(run.questions, 1) if run.standing == "in_doubt" else run.questions
    return {**run.__dict__, **texts, "labels": labels, "questions": questions}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, frozenset):
        return sorted(cast("frozenset[str]", value))
    raise TypeError(type(value).__name__)

"""What a run asks as forms of MCP, which the client shows to a person: elicitation, in both versions of the protocol.

In 2026-07-28 a call ends with the forms, and is made again with what was filled in. In 2025-11-25 a form is sent while
the call is open, and comes back in a request of its own. That one finds its way by the form's id alone, which names the
run and the question, so no session is kept; what a client can do is said by the session id that it was given.
"""

from __future__ import annotations

from contextlib import suppress
from secrets import token_hex
from typing import Any, Literal

from mcp.server.elicitation import render_elicitation_schema
from mcp.types import ClientCapabilities, ElicitRequest, ElicitRequestFormParams, ElicitResult, InitializeRequest
from pydantic import TypeAdapter, ValidationError
from starlette.types import Message, Send

from surefoot.server.answers import Problem, dumped
from surefoot.server.api import Asked, Exact, checked
from surefoot.server.protocols.status import answer, asks_of
from surefoot.server.reads import run_of
from surefoot.server.shapes import Long
from surefoot.server.sse import frame
from surefoot.types.ports import RunSummary

Json = dict[str, Any]  # Any: what JSON holds
_JSON = TypeAdapter(Json)
_SHOWS_FORMS = "forms-"


class Decision(Exact):
    """What a person says to a question; the model reads the reason."""

    decision: Literal["approve", "deny"]
    reason: Long = ""


_SCHEMA = render_elicitation_schema(Decision)


async def forms_of(asked: Asked[Any, Any], run: RunSummary) -> dict[str, ElicitRequest]:
    """What the run asks, if the token may answer, by names that an answer gives back."""
    asks = await asks_of(asked, run) if run.status == "paused" and "approve" in asked.token.rights else {}
    return {
        name: ElicitRequest(params=ElicitRequestFormParams(message=one.text, requested_schema=_SCHEMA))
        for name, one in asks.items()
    }


async def fill_in(asked: Asked[Any, Any], run: RunSummary, name: str, given: object) -> bool:
    """Take what came back for a form: declining says no, closing it nothing. Whether there is nothing left to hear.

    Raises `Problem`.
    """
    result = checked(ElicitResult, given)
    if result.action == "cancel":
        return True
    said = checked(Decision, result.content or {}) if result.action == "accept" else Decision(decision="deny")
    try:
        return await answer(asked, run, name, "mcp", said.reason, is_yes=said.decision == "approve")
    except Problem as problem:
        if problem.name not in ("not_waiting", "ended"):  # somebody else was first: how the run stands tells it
            raise
        return True


class Reply:
    """The answer to one request: one body of JSON or, once a form was sent, a stream that ends with it.

    `body` is that of the request.
    """

    def __init__(self, asked: Asked[Any, Any], body: bytes, send: Send) -> None:
        self._asked, self._send = asked, send
        self._is_stream = False
        try:
            self._given = _JSON.validate_json(body)
        except ValidationError:  # the SDK says what is wrong with it
            self._given = {}
        self._session = ""
        with suppress(ValidationError):  # all but one that opens a 2025-11-25 connection; the SDK says what is wrong
            opens = InitializeRequest.model_validate(self._given, by_name=False)
            self._session = f"{_SHOWS_FORMS}{token_hex(16)}" if shows_forms(opens.params.capabilities) else ""

    @property
    def shows_forms(self) -> bool:
        """Whether the client of a 2025-11-25 connection shows forms, and reads streams."""
        session = self._asked.request.headers.get("mcp-session-id", "")
        return session.startswith(_SHOWS_FORMS) and self._asked.wants_stream()

    async def is_filled_in(self) -> bool:
        """Take the request if it brings a form back, which has no method. Raises `Problem`."""
        ident = self._given.get("id")
        if "method" in self._given or not isinstance(ident, str):
            return False
        run_id, _, name = ident.partition(":")
        if "result" in self._given:  # an error says nothing
            await fill_in(self._asked, await run_of(self._asked, run_id), name, self._given["result"])
        return True

    async def send(self, message: Message) -> None:
        if not self._is_stream:
            own = [(b"mcp-session-id", self._session.encode())] if self._session else []
            await self._send({**message, "headers": [*message["headers"], *own]} if "headers" in message else message)
        elif message["type"] == "http.response.body":
            await self._send({**message, "body": frame("message", message["body"])})

    async def ask(self, run: RunSummary, name: str, form: ElicitRequest) -> None:
        if not self._is_stream:
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            self._is_stream = True
        told = form.model_dump(by_alias=True, mode="json", exclude_none=True)
        data = dumped({"jsonrpc": "2.0", "id": f"{run.run_id}:{name}", **told})
        await self._send({"type": "http.response.body", "body": frame("message", data), "more_body": True})


def shows_forms(declared: ClientCapabilities | None) -> bool:
    """Whether a client that declares this shows forms; elicitation without a kind means them."""
    kinds = declared.elicitation if declared is not None else None
    return kinds is not None and (kinds.form is not None or kinds.url is None)

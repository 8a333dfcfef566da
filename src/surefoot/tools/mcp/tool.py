"""One tool of an MCP server as a tool of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.core.parse.validate import Validator
from surefoot.tools.mcp.connection import Connection, Unreachable
from surefoot.tools.mcp.link import Link, LinkLost
from surefoot.tools.mcp.offers import Offer, pin_of
from surefoot.tools.mcp.results import RESERVED, code_in, result, told
from surefoot.types.ports import ToolCallContext
from surefoot.types.tools import ToolResult, ToolSpec

_PART_FOR_CONNECTING = 0.8
"""Of the time that a call has left. A call that is given up while it connects was not sent, and must say so itself."""

_MOST_TOLD_CHARS = 300


class McpTool:
    """A tool under the pin that it had when it was bound: it is not called under any other.

    Its result is always untrusted. A call whose connection is lost is a failure of infrastructure; it is sent again,
    once, only if the developer declared that it may be repeated. Source: spec/guard.md, section 4.4.
    """

    def __init__(self, offer: Offer, connection: Connection) -> None:
        self.offer = offer
        self.pin = offer.pin
        self.connection = connection
        self._output: Validator | None = None

    @property
    def spec(self) -> ToolSpec:
        return self.offer.spec

    def known_as(self, spec: ToolSpec) -> McpTool:
        """The same tool for a run that knows it by this declaration: under that one's pin."""
        pin = pin_of(spec)
        return self if pin == self.pin else McpTool(replace(self.offer, spec=spec, pin=pin), self.connection)

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Call it on its server. See `Tool`."""
        why = ""
        for may_repeat in (self.spec.may_repeat, False):
            link = await self._link(context)
            if isinstance(link, ToolResult):
                return link
            try:
                return await self._sent(link, arguments, context)
            except LinkLost as error:
                why = f" ({error})" if str(error) else ""
                if not may_repeat:
                    break
        unknown = "" if self.spec.may_repeat else " Whether it took effect is not known: find that out first."
        server = self.connection.server.name
        lost = f"The connection to the MCP server {server} was lost{why}.{unknown}"
        return result(server, lost, "error", infrastructure=True)

    async def probe(
        self,
        arguments: Mapping[str, object],  # noqa: ARG002  # as `Tool` has it
        context: ToolCallContext,  # noqa: ARG002  # the same
    ) -> ToolResult | None:
        """Never asked, as `spec.has_probe` is false: MCP has no question for that."""
        raise LookupError(f"{self.spec.name} cannot tell whether an interrupted call took effect")

    async def _link(self, context: ToolCallContext) -> Link | ToolResult:
        """The link on which it may be called, or why it may not."""
        limit_s = None if context.deadline_s is None else context.deadline_s * _PART_FOR_CONNECTING
        server = self.connection.server.name
        try:
            link = await self.connection.ready(limit_s)
        except Unreachable as error:
            return result(server, f"Not called: {error}", "error", infrastructure=True)
        now = link.listing.offers.get(self.spec.name)
        if now is None:
            return self._result(f"Not called: the MCP server {server} does not offer this tool any more.", failed=True)
        if now.pin != self.pin:
            changed = f"Not called: the MCP server {server} has changed this tool since the run began"
            return self._result(f"{changed}; a new run sees it as it is now.", failed=True)
        return link

    async def _sent(self, link: Link, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # the extra `mcp` loads late
        from mcp_types import CallToolResult  # noqa: PLC0415  # as above
        from pydantic import ValidationError  # noqa: PLC0415  # loads late as well

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", progress, total)

        try:
            answer = await link.call(self.offer.remote, arguments, on_progress)
        except MCPError as error:
            code = error.code
            return replace(self._result(error.message, failed=True), error="" if code in RESERVED else f"tool:{code}")
        except ValidationError:
            return self._result("The call was made, but its answer is not one that MCP allows.", failed=True)
        if not isinstance(answer, CallToolResult):
            return self._result("Not done: the server asks for input of a person, which it cannot get.", failed=True)
        structured = self.spec.output is not None and not answer.is_error and answer.structured_content is not None
        if structured and (faults := self._faults(answer.structured_content)):
            return self._result(
                f"The call was made, but its result does not fit the tool's own schema: {faults}", failed=True
            )
        made = self._result(told(answer, structured=structured), failed=answer.is_error)
        return replace(made, structured=structured, error=code_in(answer) if answer.is_error else "")

    def _faults(self, content: object) -> str:
        """What is wrong with a structured result by the server's own schema; "" when nothing is."""
        if self._output is None:
            self._output = Validator(self.spec.output or {}, closed=False)
        return "; ".join(map(str, self._output.faults(content)))[:_MOST_TOLD_CHARS]

    def _result(self, text: str, *, failed: bool) -> ToolResult:
        return result(self.connection.server.name, text, "error" if failed else "ok")

"""An MCP server over streamable HTTP, made with the `mcp` package. `python mcp_http.py PORT`."""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("http")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
def who(context: Context) -> str:
    """The password that the caller sent."""
    return str((context.headers or {}).get("authorization"))


def late() -> str:
    """It was not there before."""
    return "late"


@server.tool()
async def grow(context: Context) -> str:
    """Offer one tool more."""
    server.add_tool(late)
    await context.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))

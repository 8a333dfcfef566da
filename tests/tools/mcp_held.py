"""An MCP server with resources, a prompt and a picture: `python mcp_held.py [PORT]`, over stdio without a port."""

import sys
from base64 import b64decode

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.resources import BinaryResource, TextResource

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")
server = MCPServer("held")
server.add_resource(TextResource(uri="notes://monday", name="monday", text="The ladder is in the shed."))
server.add_resource(BinaryResource(uri="pictures://dot.png", name="dot", mime_type="image/png", data=PNG))
ODD = BinaryResource(uri="raw://odd.bin", name="odd", mime_type="application/x-odd", data=b"\x00\x01\xff")
server.add_resource(ODD)


@server.prompt()
def where(thing: str) -> str:
    """Ask where something is."""
    return f"Where is the {thing}?"


@server.tool()
def draw() -> Image:
    """Draw a dot."""
    return Image(data=PNG, format="png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")

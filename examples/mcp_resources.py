"""What an MCP server holds beside tools: a resource for a task, one that a model reads, and a prompt.

`python examples/mcp_resources.py [MODEL]`, local by default. The server is in this file.
"""

import asyncio
import sys

from surefoot import Agent, McpServer, McpServers

NOTES = {"monday": "The ladder is in the shed.", "tuesday": "The paint is green."}


def serve() -> None:
    """The server, over standard streams."""
    from mcp.server.mcpserver import MCPServer  # noqa: PLC0415  # only the process that serves needs it
    from mcp.server.mcpserver.resources import TextResource  # noqa: PLC0415  # the same

    server = MCPServer("notes")

    for day, text in NOTES.items():
        server.add_resource(TextResource(uri=f"notes://{day}", name=day, text=text))

    @server.prompt()
    def question(thing: str) -> str:
        """Ask where something is."""
        return f"Where is the {thing}? Answer in one short sentence."

    server.run("stdio")


async def main(model: str) -> None:
    """Ask about a note, with a prompt of the server as the task."""
    notes = McpServer("notes", command=sys.executable, args=(__file__, "serve"), resources=True)
    async with McpServers([notes]) as servers:
        resources, prompts = await servers.contents("notes")
        print("resources:", ", ".join(one.uri for one in resources))
        print("prompts:", ", ".join(one.name for one in prompts))
        task = (await servers.prompt("notes", "question", {"thing": "ladder"}))[0].content
        note = await servers.resource("notes", "notes://monday")
        print((await Agent(model).run(task, attachments=note)).answer)
        async with Agent(model, mcp=servers) as reader:
            print((await reader.run("Read the resource notes://tuesday. What colour is the paint?")).answer)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "local"))

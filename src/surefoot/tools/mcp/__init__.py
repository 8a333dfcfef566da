"""Tools of MCP servers: what is configured, one connection a server, and each listed tool as a tool of ours."""

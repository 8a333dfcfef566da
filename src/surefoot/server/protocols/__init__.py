"""Protocols of others: each tells runs in its own frames, and has no right of its own."""

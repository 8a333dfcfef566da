"""The plan of a run: how far it has come, and what it asks for next."""

"""Everyday tasks for a small model: files, lists and a few devices, each with a check on the world that is left."""

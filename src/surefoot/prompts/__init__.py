"""Prompts are files: templates in Markdown, read by `load` and handed to the core as values."""

"""Text and what is in it, without a state: JSON, words, values, results as records, and how things look."""

from surefoot.core.text.json import at, clean, decoded, json_text, object_schema, shared_of, shortened

__all__ = ["at", "clean", "decoded", "json_text", "object_schema", "shared_of", "shortened"]

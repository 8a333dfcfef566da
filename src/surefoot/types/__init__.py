"""The vocabulary: frozen, JSON-able values that every room speaks in."""

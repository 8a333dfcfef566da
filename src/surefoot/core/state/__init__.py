"""A run as its events tell it, and what is asked of that: pure records and questions."""

"""A state as messages: what a model is shown."""

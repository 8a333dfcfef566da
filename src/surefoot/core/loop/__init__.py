"""The loop: events add up to a state, and a state says what to do next."""

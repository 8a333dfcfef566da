"""Pre-hydration: what a task refers to is found, fetched before the first turn, cut to a budget and shown as data."""

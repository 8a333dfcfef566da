"""The pure core: what has happened, what to do now, what a model sees. No clock, no disk, no network."""

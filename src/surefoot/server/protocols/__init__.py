"""Other protocols: each maps its own requests to runs, and runs to its own answers. None has a right of its own."""

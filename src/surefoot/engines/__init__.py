"""Other engines for the same runs: who works when is theirs, what happened stands in the journal."""

"""The gate, asked about a state: its verdicts, and the ways to go on that it looks at."""

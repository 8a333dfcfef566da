"""What happened in each run, kept: append, read, follow, fork; in memory or in one SQLite file."""

"""Runs as Temporal workflows: the core decides in the workflow, hands are activities, the journal is the truth."""

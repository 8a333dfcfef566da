"""The gate: pure policies that say whether a call may run."""

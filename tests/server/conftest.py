"""Makes what stands beside it importable in the folders below."""

"""Our own attack suite: tool-stream injections of five types against a shop, a calendar and a ledger.

The types are those of SIREN (VIGIL, arXiv 2601.05755), rebuilt from their published descriptions. Source:
spec/guard.md, section 7.4.
"""

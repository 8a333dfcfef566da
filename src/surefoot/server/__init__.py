"""`surefoot serve`: runs over HTTP. It decides nothing: it puts tasks and people's words on record, and shows records.

Needs the extra `server`. Source: spec/serving.md.
"""

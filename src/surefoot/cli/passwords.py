"""Addresses without the user and password that may stand in them."""

from __future__ import annotations

import re

_USER = re.compile(r"(?<=://)[^/?#\s]*@")


def without_password(text: str) -> str:
    """The text with `user:password@` taken out of each URL in it."""
    return _USER.sub("", text)

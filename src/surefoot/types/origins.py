"""What a value of a call's arguments is, and where it comes from: the words in which the gate speaks of it."""

from __future__ import annotations

from typing import Literal

Role = Literal["destination", "object", "amount", "secret", "time", "content", "selector", "option"]
"""What a leaf of a call's arguments is to the effect (spec/guard.md, section 4.3)."""

ValueKind = Literal["email", "url", "account", "phone", "key", "encoded", "number", "date", "text"]
"""What a value looks like, whatever its parameter is called (section 4.5)."""

Origin = Literal["user", "config", "declared", "derived", "untrusted", "invented"]
"""Where a leaf comes from; the first four are good (section 4.6)."""

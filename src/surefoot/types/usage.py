"""What requests to a model have used."""

from __future__ import annotations

from surefoot.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, and US dollars where known, of one request with its failed attempts. `estimated`: our own count."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        cost = self.cost_usd if other.cost_usd is None else other.cost_usd + (self.cost_usd or 0.0)
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            cost,
            self.estimated or other.estimated,
        )

    def since(self, before: Usage) -> Usage:
        """What was used after `before`, which is a part of this."""
        cost = None if self.cost_usd is None else self.cost_usd - (before.cost_usd or 0.0)
        return Usage(
            self.input_tokens - before.input_tokens,
            self.output_tokens - before.output_tokens,
            self.cached_tokens - before.cached_tokens,
            self.reasoning_tokens - before.reasoning_tokens,
            cost,
            self.estimated,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output together; cached and reasoning tokens are parts of these."""
        return self.input_tokens + self.output_tokens

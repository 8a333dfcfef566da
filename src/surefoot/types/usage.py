"""What requests to a model have used."""

from __future__ import annotations

from surefoot.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, and US dollars where known, of one request with its failed attempts. `estimated`: our own count.

    Of the input, `cached_tokens` were read from the provider's cache, and `cache_write_tokens` were put into it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        cost = self.cost_usd if other.cost_usd is None else other.cost_usd + (self.cost_usd or 0.0)
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            cost,
            self.estimated or other.estimated,
            self.cache_write_tokens + other.cache_write_tokens,
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
            self.cache_write_tokens - before.cache_write_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output together; the other tokens are parts of these."""
        return self.input_tokens + self.output_tokens


NO_USAGE = Usage()

"""What passes between a wire and its HTTP client: limits going in, rejections coming out."""

from collections.abc import Callable

from surefoot.types.dataclass import dataclass

OnChunk = Callable[[bytes], bool]
"""Takes bytes of a stream as they come; true when no more are wanted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each wait of a request may be, in seconds. `is_deadline` tells that the run's time sets `whole_s`."""

    connect_s: float
    first_s: float
    between_s: float
    whole_s: float
    is_deadline: bool = False


@dataclass(frozen=True, slots=True)
class Rejection:
    """An answer with another status than 200."""

    status: int
    body: bytes
    retry_after_ms: str | None
    retry_after: str | None

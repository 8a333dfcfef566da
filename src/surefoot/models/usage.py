"""What a request used where its server does not tell, and what that costs."""

from surefoot.models.json_edge import write
from surefoot.types.messages import ModelSettings, NativeCall, Usage

CHARACTERS_A_TOKEN = 4  # the usual rule of thumb, for servers that tell no usage


def estimated(sent_bytes: int, said: str, calls: tuple[NativeCall, ...], settings: ModelSettings) -> Usage:
    """What a request probably used, from its size and that of the reply."""
    chars = len(said) + sum(
        len(call.arguments if isinstance(call.arguments, str) else write(call.arguments)) for call in calls
    )
    used_in, used_out = sent_bytes // CHARACTERS_A_TOKEN, chars // CHARACTERS_A_TOKEN
    return Usage(used_in, used_out, cost_usd=price_of(used_in, used_out, settings), estimated=True)


def price_of(used_in: int, used_out: int, settings: ModelSettings) -> float | None:
    """US dollars for that many tokens; `None` when the settings name no price."""
    if settings.price_in is None and settings.price_out is None:
        return None
    return (used_in * (settings.price_in or 0.0) + used_out * (settings.price_out or 0.0)) / 1_000_000

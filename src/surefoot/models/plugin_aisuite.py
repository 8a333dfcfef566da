"""Models through the aisuite library, for providers that surefoot has no wire for: `aisuite:provider:model`."""

import asyncio
import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from surefoot.models.json_edge import Json
from surefoot.models.library_model import LibraryModel
from surefoot.types.errors import ConfigError
from surefoot.types.messages import ModelSettings
from surefoot.types.ports import Model

Create = Callable[..., Any]  # the library's function takes any field and types its reply by itself


def aisuite_model(name: str, settings: ModelSettings, *, create: Create | None = None) -> Model:
    """The model that aisuite calls `name`. `create` stands in for its `client.chat.completions.create`.

    The library blocks, so it runs in a thread; a request that is cancelled or times out is no longer waited for, but
    goes on in its thread until the library gives up. Its clients may retry by themselves, before surefoot does. Raises
    `ConfigError` when the library is not installed. It is imported with the first request.
    """
    del settings  # every request carries its own
    if create is None and find_spec("aisuite") is None:
        raise ConfigError("model", f"aisuite:{name}", "the library is missing: pip install aisuite")
    made: list[Create] = [] if create is None else [create]

    def ask(fields: Json) -> object:
        if not made:
            made.append(importlib.import_module("aisuite").Client().chat.completions.create)
        return made[0](**fields)

    async def complete(fields: Json) -> object:
        return await asyncio.to_thread(ask, fields)

    return LibraryModel(f"aisuite:{name}", name, complete, library="the aisuite library")

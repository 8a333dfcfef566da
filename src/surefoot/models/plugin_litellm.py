"""Models through the LiteLLM library, for providers that surefoot has no wire for: `litellm-lib:provider/model`.

A LiteLLM *proxy* needs no library: it speaks the OpenAI chat wire and is the provider `litellm`.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Any

from surefoot.models.json_edge import Json
from surefoot.models.library_model import LibraryModel
from surefoot.types.errors import ConfigError
from surefoot.types.messages import ModelSettings
from surefoot.types.ports import Model

Acompletion = Callable[..., Awaitable[Any]]  # the library's function takes any field and types its reply by itself


def litellm_model(name: str, settings: ModelSettings, *, acompletion: Acompletion | None = None) -> Model:
    """The model that LiteLLM calls `name`. `acompletion` stands in for the library's function of that name.

    Raises `ConfigError` when the library is not installed. It is imported with the first request.
    """
    if acompletion is None and find_spec("litellm") is None:
        raise ConfigError("model", f"litellm-lib:{name}", "the library is missing: pip install litellm")

    async def complete(fields: Json) -> object:
        ask = acompletion
        if ask is None:  # its import takes seconds, in which other runs go on
            ask = (await asyncio.to_thread(importlib.import_module, "litellm")).acompletion
        # surefoot retries by itself, and counts what it does
        return await ask(**fields, num_retries=0, max_retries=0, timeout=settings.patience().whole_s)

    return LibraryModel(f"litellm-lib:{name}", name, complete, library="the LiteLLM library")

"""From a model's name, as a user writes it, to a model that can be asked. Source: spec/reasoners.md, section 2."""

import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import cast
from urllib.parse import urlsplit

from surefoot.models.anthropic import Anthropic
from surefoot.models.breaker import CircuitBreaker
from surefoot.models.http_model import HttpModel
from surefoot.models.known import known_traits
from surefoot.models.openai_chat import OpenAIChat
from surefoot.models.openai_responses import OpenAIResponses
from surefoot.models.retry import Retried
from surefoot.models.wire import Wire
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.messages import ModelSettings
from surefoot.types.ports import Model

EXAMPLES = (
    "openai:gpt-5.1-mini · openai-responses:gpt-5.1-mini · anthropic:claude-sonnet-4-6 · deepseek:deepseek-chat · "
    "qwen:qwen-plus · gemini:gemini-2.5-flash · ollama:qwen3:8b · openrouter:qwen/qwen3-32b · "
    "http://localhost:8000/v1#my-model · local"
)
ENTRY_POINTS = "surefoot.models"


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider's API is, which wire it speaks, and which environment variables hold its key and base URL."""

    base_url: str = ""
    keys: tuple[str, ...] = ()
    base_url_variable: str = ""
    needs_key: bool = True
    wire: Callable[[str], Wire] = OpenAIChat


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "openai-responses": Provider(
        "https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL", wire=OpenAIResponses
    ),
    "anthropic": Provider("https://api.anthropic.com", ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", wire=Anthropic),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", ("GEMINI_API_KEY",)),
    "qwen": Provider("https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",), "DASHSCOPE_BASE_URL"),
    "deepseek": Provider("https://api.deepseek.com", ("DEEPSEEK_API_KEY", "DeepSeek")),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "ollama": Provider("http://localhost:11434/v1", ("OLLAMA_API_KEY",), needs_key=False),
    "vllm": Provider("http://localhost:8000/v1", ("VLLM_API_KEY",), needs_key=False),
    "lmstudio": Provider("http://localhost:1234/v1", ("LMSTUDIO_API_KEY",), needs_key=False),
    "llamacpp": Provider("http://localhost:8080/v1", ("LLAMACPP_API_KEY",), needs_key=False),
    "dbgpt": Provider("", ("DBGPT_API_KEY",), "DBGPT_BASE_URL", needs_key=False),
    "litellm": Provider("", ("LITELLM_API_KEY",), "LITELLM_BASE_URL", needs_key=False),
}


def resolve(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    settings: ModelSettings | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Model:
    """The model of that name, with retry and circuit breaker around it. Nothing is sent or opened yet.

    `name` is `provider:model`, `http://host:port/v1#model`, any model name beside a `base_url`, or `local`. A key given
    here or in the environment is used; a local base URL needs none. `settings` go to plug-ins. Raises `ConfigError`
    for a missing key or base URL, `UsageError` for a name that cannot be understood.
    """
    if name == "local" or name.startswith("local:"):
        return _local()
    if name.startswith(("http://", "https://")):
        base, _, model = name.partition("#")
        if not model:
            raise UsageError(f"{name!r} names no model: write http://host:port/v1#model")
        return _endpoint(name, model, Provider(base, ("OPENAI_API_KEY",)), api_key, environment)
    provider_name, colon, model = name.partition(":")
    provider = PROVIDERS.get(provider_name)
    if colon and model and provider is not None:
        if base_url:
            provider = replace(provider, base_url=base_url, base_url_variable="")
        return _endpoint(name, model, provider, api_key, environment)
    if colon and (entry := _plug_in(provider_name)) is not None:
        make = cast("Callable[[str, ModelSettings], Model]", entry.load())  # what the entry-point group promises
        return CircuitBreaker(Retried(make(model, settings or ModelSettings())))
    if base_url:
        return _endpoint(name, name, Provider(base_url, ("OPENAI_API_KEY",)), api_key, environment)
    raise UsageError(f"{name!r} is no model name that surefoot knows: write provider:model, such as {EXAMPLES}")


def is_local_url(url: str) -> bool:
    """Whether a URL points to this machine or into a private network, where servers seldom ask for a key."""
    host = (urlsplit(url).hostname or "").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name; one without a dot resolves only inside the own network
        return bool(host) and ("." not in host or host.endswith((".localhost", ".local", ".internal")))
    return address.is_loopback or address.is_private or address.is_link_local


def _endpoint(name: str, model: str, provider: Provider, api_key: str | None, environment: Mapping[str, str]) -> Model:
    url = environment.get(provider.base_url_variable, "") or provider.base_url
    if not url:
        raise ConfigError(
            "base_url",
            "",
            f"{name} needs its server's address: pass base_url=… or set {provider.base_url_variable}",
        )
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_valid_port(url):
        raise ConfigError("base_url", url, "a base URL begins with http:// or https:// and names a host")
    key = api_key or next((environment[variable] for variable in provider.keys if environment.get(variable)), "")
    if not key and provider.needs_key and not is_local_url(url):
        variable = provider.keys[0]
        raise ConfigError(
            "api_key", "", f"{name} needs a key: set the environment variable {variable}, or pass api_key=…"
        )
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigError("api_key", "…", f"the key for {name} holds signs that no key has; copy it again")
    host = parts.netloc.rpartition("@")[2]
    traits = known_traits(host, model)
    asked = HttpModel(provider.wire, name, model, url, key=key, key_variable=provider.keys[0], traits=traits)
    return CircuitBreaker(Retried(asked))


def _has_valid_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _local() -> Model:
    from surefoot.models.local import LocalModel  # noqa: PLC0415 - an extra, loaded when it is used

    return LocalModel.from_default()


def _plug_in(provider: str) -> EntryPoint | None:
    return next(iter(entry_points(group=ENTRY_POINTS, name=provider)), None)


def identity_of(model: Model) -> str:
    """Wire, base URL and model in one text, under which learnt traits are kept; the name where a model has no other."""
    while isinstance(model, CircuitBreaker | Retried):
        model = model.inner
    return model.identity if isinstance(model, HttpModel) else model.name

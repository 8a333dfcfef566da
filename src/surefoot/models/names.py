"""From a model's name, as a user writes it, to a model that can be asked. Source: spec/reasoners.md, section 2."""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from typing import Literal, cast
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from surefoot.core.text.words import table
from surefoot.models.anthropic import Anthropic
from surefoot.models.files import QWEN_CODER
from surefoot.models.http_model import HttpModel, Key, is_key, opens
from surefoot.models.openai_chat import AzureChat, OpenAIChat
from surefoot.models.openai_responses import OpenAIResponses
from surefoot.models.traits import declared_traits, known_traits
from surefoot.models.wire import Form, Wire
from surefoot.models.wrapper import CircuitBreaker, Retried, circuit_of, identity_of
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.errors import ConfigError, SurefootError, UsageError
from surefoot.types.messages import ModelSettings, Traits
from surefoot.types.ports import Model
from surefoot.types.settings import text

EXAMPLES = (
    "openai:gpt-5.1-mini · openai-responses:gpt-5.1-mini · anthropic:claude-sonnet-4-6 · deepseek:deepseek-chat · "
    "qwen:qwen-plus · azure:my-deployment · gemini:gemini-2.5-flash · ollama:qwen3:8b · openrouter:qwen/qwen3-32b · "
    "http://localhost:8000/v1#my-model · local"
)
ENTRY_POINTS = "surefoot.models"

_SLASHES_OF_A_HOST = 2
_ANY_KEY = "SUREFOOT_API_KEY"  # for the host that a URL names
_HEADER = re.compile(r"[!#$%&'*+.^_`|~\w-]+", re.ASCII)
_KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})  # in which a wire sends its key
_OUR_HEADERS = frozenset({"content-type", "content-length", "transfer-encoding", "connection"})
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_API_VERSION = "api-version"
_NONE: Mapping[str, str] = {}

Place = Callable[[str, str, Mapping[str, str], Mapping[str, str]], tuple[str, Mapping[str, str]]]
"""From an address, a model's name, the query and the environment to the base URL and the query."""


@dataclass(frozen=True, slots=True)
class Provider:
    """An API, its wire, and the variables that hold its key and base URL; the key may go to `hosts` that end so, too.

    `place` says where a model is, if not right there.
    """

    base_url: str = ""
    keys: tuple[str, ...] = ()
    base_url_variable: str = ""
    needs_key: bool = True
    wire: Callable[[str], Wire[Form]] = OpenAIChat
    hosts: tuple[str, ...] = ()
    place: Place | None = None


def _deployment(
    base_url: str, name: str, query: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, Mapping[str, str]]:
    """The base URL and query of a deployment, from the address of its resource.

    With a dated API version, in the query or the environment, the deployment stands in the path; else the address is
    that of Azure's v1 API. An address that goes on to either of them already is taken as it is.
    """
    base = base_url.rstrip("/").removesuffix("/chat/completions")
    if base.endswith("/openai/v1") or "/openai/deployments/" in base:
        return base, query
    base = base.removesuffix("/openai")
    version = query.get(_API_VERSION) or environment.get("OPENAI_API_VERSION", "")
    if version:
        query = {**query, _API_VERSION: version}
    if version[:1].isdecimal():
        return f"{base}/openai/deployments/{quote(name, safe='')}", query
    return f"{base}/openai/v1", query


_WIRES = {"openai-responses": OpenAIResponses, "anthropic": Anthropic, "azure": AzureChat}
PROVIDERS: dict[str, Provider] = {
    name: Provider(**row | {"keys": tuple(row["keys"]), "wire": _WIRES.get(name, OpenAIChat)})
    for name, row in table("models")["providers"].items()
}
PROVIDERS["azure"] = replace(PROVIDERS["azure"], hosts=_AZURE, place=_deployment)


@dataclass(frozen=True, slots=True)
class _Given:
    base_url: str | None
    api_key: Key | None
    headers: Mapping[str, str]
    query: Mapping[str, str]
    traits: Traits
    environment: Mapping[str, str]

    @property
    def label(self) -> str:
        """The first of what was given, as messages name it; "" for nothing."""
        names = {"base_url": "base URL", "api_key": "key", "headers": "headers", "query": "query", "traits": "traits"}
        return next((told for name, told in names.items() if getattr(self, name)), "")

    def check(self) -> None:
        """Raises `ConfigError`, which never shows a value."""
        if not (self.api_key is None or isinstance(self.api_key, str) or callable(self.api_key)):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise ConfigError("api_key", "…", "give a text, or a callable that gives one")
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name) or not isinstance(value, str) or not is_key(value):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
                told = "a header has a name without spaces and a text of one line, in ASCII"
                raise ConfigError("headers", name, told)
            if name.lower() in _OUR_HEADERS:
                raise ConfigError("headers", name, "surefoot writes this header itself; leave it out")
        for name, value in self.query.items():
            if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
                raise ConfigError("query", name, "its value must be text")


def resolve(
    name: str,
    *,
    base_url: str | None = None,
    api_key: Key | None = None,
    headers: Mapping[str, str] = _NONE,
    query: Mapping[str, str] = _NONE,
    traits: Traits | Literal["small"] = _NONE,
    settings: ModelSettings | None = None,
    waits: bool = True,
    environment: Mapping[str, str] = os.environ,
) -> Model:
    """The model with that name, with retries and a circuit breaker. Nothing is sent or opened yet.

    `name` is `provider:model`, `http://host:port/v1#model`, any model name beside a `base_url`, or `local`. The key is
    the one given, the password of the URL or the environment's; a local base URL needs none, and a callable gives one
    for each request. `headers` and `query` go with each request, and may hold the secret. `traits` say what is known of
    the model, "small" that it is led as the embedded one is. A provider's key of the environment goes only to its own
    public host or that of its base URL variable; other hosts get `SUREFOOT_API_KEY`. `settings` go to plug-ins. Models
    of one wire, base URL and name share a circuit; `waits`: whether a request waits while it is open. Raises
    `ConfigError` for a missing key or base URL, a value that cannot be meant, a key that would go unencrypted and a
    broken plug-in, `UsageError` for a name that is none.
    """
    text("model", name)
    given = _Given(base_url, api_key, headers, query, declared_traits(traits), environment)
    given.check()
    if name == "local" or name.startswith("local:"):
        if given.label:
            remedy = "leave it out, or name a server's model"
            raise UsageError(f"{name!r} runs in this process and has no {given.label}: {remedy}")
        if name not in ("local", f"local:{QWEN_CODER.name}"):
            remedy = f"write local (it is {QWEN_CODER.name}), or ollama:… for a model of Ollama's"
            raise UsageError(f"{name!r} cannot be embedded: {remedy}")
        from surefoot.models.local import LocalModel  # noqa: PLC0415 - an extra, loaded when it is used

        return LocalModel.from_default()
    asked = _make_model(name, given, settings or ModelSettings())
    near = isinstance(asked, HttpModel) and asked.is_near
    return CircuitBreaker(Retried(asked, near=near), waits=waits, circuit=circuit_of(identity_of(asked)))


def _make_model(name: str, given: _Given, settings: ModelSettings) -> Model:
    if name.lower().startswith(("http://", "https://")):
        base, _, model = name.partition("#")
        if not model:
            raise UsageError(f"{redact_url(name)!r} names no model: write http://host:port/v1#model")
        if given.base_url:
            told = "names its server itself: leave out the base URL, or name only the model"
            raise UsageError(f"{redact_url(name)!r} {told}")
        if "@" in model and ("#" in model or base.count("/") == _SLASHES_OF_A_HOST):
            # the # may be inside a password, which must not become a model's name
            told = "cannot be read: write # of a password as %23, and a / after the host"
            raise UsageError(f"{redact_url(name)!r} {told}")
        name = f"{parse_base_url(base)[0].geturl()}#{model}"
        return _endpoint(name, model, _at(base, PROVIDERS["openai"], given.environment), given)
    provider_name, colon, model = name.partition(":")
    provider = PROVIDERS.get(provider_name)
    if colon and model and provider is not None:
        if given.base_url:
            provider = _at(given.base_url, provider, given.environment)
        return _endpoint(name, model, provider, given)
    from importlib.metadata import entry_points  # noqa: PLC0415  # it takes 15 ms, for a plug-in's name alone

    if colon and (entry := next(iter(entry_points(group=ENTRY_POINTS, name=provider_name)), None)) is not None:
        if given.label:
            told = f"is a plug-in's, which finds its {given.label} by itself: leave it out"
            raise UsageError(f"{redact_url(name)!r} {told}")
        try:
            make = cast("Callable[[str, ModelSettings], Model]", entry.load())  # what the entry-point group promises
            return make(model, settings)
        except SurefootError:
            raise
        except Exception as error:  # a plug-in is anybody's code
            told = f"the plug-in {entry.name!r} ({entry.value}) is broken: {type(error).__name__}; update or remove it"
            raise ConfigError("model", name, told) from error
    if given.base_url:
        provider = _at(given.base_url, PROVIDERS["openai"], given.environment)
        return _endpoint(name, name, provider, given)
    told = f"is not a model name that surefoot knows: write provider:model, such as {EXAMPLES}"
    raise UsageError(f"{redact_url(name)!r} {told}")


def _endpoint(name: str, model: str, provider: Provider, given: _Given) -> Model:
    url = given.environment.get(provider.base_url_variable, "") or provider.base_url
    if not url:
        told = f"set the environment variable {provider.base_url_variable}, or write http://host:port/v1#model"
        raise ConfigError("base_url", "", f"{name} needs its server's address: {told}")
    base, url_key = parse_base_url(url)
    written = dict(parse_qsl(base.query, keep_blank_values=True))
    if any(map(opens, written)):
        raise ConfigError("base_url", "…", "the query of a URL is shown; give a key that stands in it as query={…}")
    url, query = base._replace(query="", fragment="").geturl(), {**written, **given.query}
    if provider.place is not None:
        url, query = provider.place(url, model, query, given.environment)
    key, variable = _key(name, url, url_key, provider, given)
    if (key or any(map(opens, (*given.headers, *query)))) and base.scheme == "http" and not is_local_url(url):
        told = f"a key would go to {base.hostname} unencrypted: use https://, or tunnel to localhost"
        raise ConfigError("base_url", url, told)
    return HttpModel(
        provider.wire,
        name,
        model,
        url,
        key=key,
        key_variable=variable,
        headers=given.headers,
        query=query,
        traits={**known_traits(base.netloc, model), **given.traits},
        near=is_this_machine(url),
    )


def _key(name: str, url: str, url_key: str, provider: Provider, given: _Given) -> tuple[Key, str]:
    """The key for an address, and what a message about it names: the variable that holds it, or how it was given."""
    in_place = next((header for header in given.headers if header.lower() in _KEY_HEADERS), "")
    if in_place:
        if given.api_key:
            raise ConfigError("headers", in_place, "the key is given twice; leave out this header, or api_key")
        return "", "`headers`"
    if callable(given.api_key):
        return given.api_key, "`api_key`"
    variable = next((variable for variable in provider.keys if given.environment.get(variable)), provider.keys[0])
    key = (given.api_key or url_key or given.environment.get(variable, "")).strip()  # a URL's password was for its host
    if not key and any(map(opens, (*given.headers, *given.query))):
        return "", "`headers` and `query`"
    if not key and provider.needs_key and not is_local_url(url):
        variables = " or ".join(provider.keys)
        raise ConfigError(variable, "", f"{name} needs a key: set the environment variable {variables}")
    if key and not is_key(key):
        told = "api_key" if given.api_key or url_key else variable
        raise ConfigError(told, "…", f"the key for {name} has characters that no key has; copy it again")
    return key, variable


def _at(base_url: str, provider: Provider, environment: Mapping[str, str]) -> Provider:
    """The provider at an address that the caller names; the key of a public service goes only to where it belongs."""
    keys = provider.keys
    if provider.needs_key and not (provider.base_url and is_local_url(provider.base_url)):
        own = host_of(environment.get(provider.base_url_variable, ""))
        homes, host = {host_of(provider.base_url), own} - {""}, host_of(base_url)
        is_home = host in homes or (not homes and host.endswith(provider.hosts or ("\0",)))
        keys = (*keys, _ANY_KEY) if is_home else (_ANY_KEY,)
    return replace(provider, base_url=base_url, base_url_variable="", keys=keys)


def parse_base_url(url: str) -> tuple[SplitResult, str]:
    """The parts of a URL without its user, and the key in it: the password, or the user. Raises `ConfigError`."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("base_url", redact_url(url), "a base URL begins with http:// or https:// and names a host")
    try:
        has_port = parts.port != 0
    except ValueError:
        has_port = False
    if not has_port:
        raise ConfigError("base_url", redact_url(url), "the port of a base URL that names a host is from 1 to 65535")
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        # a raw / ? or # ended the host inside a password: what is taken for the host is a user's name
        told = "write / ? # of a password as %2F %3F %23, and @ of a path as %40"
        raise ConfigError("base_url", redact_url(url), told)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]), unquote(parts.password or parts.username or "")


def redact_url(url: str) -> str:
    """What an error may show of text that may be a URL with a password, however badly it is written."""
    before, at, rest = url.rpartition("@")
    scheme, mark, _ = before.partition("://")
    return f"{scheme}{mark}{rest}" if at and mark else rest


def host_of(url: str) -> str:
    """The host of a URL in lower case; "" where it has none."""
    parts = _split(url)
    return (parts.hostname or "") if parts is not None else ""


def is_local_url(url: str) -> bool:
    """Whether a URL points to this machine or into a private network, where servers seldom ask for a key."""
    host = host_of(url)
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_private or address.is_link_local
    # a name without a dot resolves only inside the own network, unless it is a number
    if not host or host.isdecimal() or host.startswith("0x"):
        return False
    return "." not in host or host.endswith((".localhost", ".local", ".internal"))


def is_this_machine(url: str) -> bool:
    """Whether a URL points to this very machine."""
    host = host_of(url)
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name
        return None
    return (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:  # its words may hold the password, so it is not passed on
        return None

"""From a name and an environment to a model: addresses, keys and where they may go, plug-ins."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cases import cases, each
from surefoot.models.anthropic import Anthropic
from surefoot.models.http_model import HttpModel
from surefoot.models.names import PROVIDERS, is_local_url, resolve
from surefoot.models.wrapper import WrappedModel, identity_of
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.messages import ModelSettings, Patience
from surefoot.types.ports import Model

KEY = "sk-very-secret-0123456789"
PUBLIC = [name for name, provider in PROVIDERS.items() if provider.base_url.startswith("https")]
EVERY_KEY = {variable: KEY for provider in PROVIDERS.values() for variable in provider.keys}


@each("name", [*(f"{provider}:m" for provider in PUBLIC), "https://a.example/v1#m"])
def test_a_missing_key_names_its_variable(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^([A-Z_]+_API_KEY): .* set the environment variable \1"):
        resolve(name, environment={})


@cases("models/names")
def test_local_is_what_points_home(is_local: bool, hosts: str) -> None:
    assert [host for host in hosts.split() if is_local_url(f"http://{host}/v1") is not is_local] == []


def test_anthropics_base_url_with_or_without_its_version() -> None:
    urls = [Anthropic("m").url(base) for base in ("https://api.anthropic.com", "http://localhost:1/v1")]
    assert urls == ["https://api.anthropic.com/v1/messages", "http://localhost:1/v1/messages"]


def endpoint_of(model: Model) -> HttpModel:
    while isinstance(model, WrappedModel):
        model = model.inner
    assert isinstance(model, HttpModel)
    return model


def sent(model: Model) -> tuple[str, str]:
    """The URL that is called, and the key that goes with it."""
    asked = endpoint_of(model)
    return asked._url, asked._endpoint.key  # pyright: ignore[reportPrivateUsage] - no request is made to see them


@cases("models/names")
def test_where_a_name_leads(given: Mapping[str, Any], leads: Mapping[str, str]) -> None:
    model = resolve(**given)
    url, key = sent(model)
    told = {"name": model.name, "identity": identity_of(model), "url": url, "key": key}
    assert {part: told[part] for part in leads} == leads
    assert KEY not in repr(model)
    assert "secret" not in repr(model)


@cases("models/names")
def test_what_cannot_be_meant_is_refused_before_anything_is_sent(
    given: Mapping[str, Any], error: str, words: str
) -> None:
    options: dict[str, Any] = {"environment": {}, **given}
    with pytest.raises(UsageError, match=words) as caught:
        resolve(**options)
    assert type(caught.value).__name__ == error
    assert KEY not in str(caught.value)


BAD_URLS = (
    "http://bob:hunter2@host:99999/v1 http://bob:hunter2@host:x/v1 http://bob:hunter2@[::1/v1 http://bob:hunter2@/v1 "
    "http://bob:hunter2@8.8.8.8/v1 http://bob:hun/ter2@host/v1 http://bob:1/hunter2@host/v1 "
    "http://bob:1?hunter2@host/v1 http://bob:1#hunter2@host/v1 ftp://bob:hunter2@host/v1 bob:hunter2@host/v1 http://bob:hunter2@host\u2100/v1"
)


@each("url", BAD_URLS.split())
def test_no_error_shows_the_user_of_a_url(url: str) -> None:
    for name, base_url in ((f"{url}#m", None), ("m", url), ("openai:m", url), (url, None)):
        with pytest.raises(UsageError) as caught:
            resolve(name, base_url=base_url, environment={})
        told = f"{caught.value} {caught.value.__dict__} {caught.value.__cause__!r} {caught.value.__context__!r}"
        assert not any(secret in told for secret in ("bob", "hun", "ter2")), told


@each("provider", PUBLIC)
def test_the_key_of_a_public_service_goes_to_no_other_host(provider: str) -> None:
    row = PROVIDERS[provider]
    environment = dict.fromkeys(row.keys, KEY)
    assert sent(resolve(f"{provider}:m", base_url=row.base_url, environment=environment))[1] == KEY
    assert sent(resolve(f"{provider}:m", base_url="http://127.0.0.1:1/v1", environment=environment))[1] == ""
    with pytest.raises(ConfigError, match="SUREFOOT_API_KEY"):
        resolve(f"{provider}:m", base_url="https://gpu.example/v1", environment=environment)
    own = environment | {"SUREFOOT_API_KEY": "own"}
    assert sent(resolve(f"{provider}:m", base_url="https://gpu.example/v1", environment=own))[1] == "own"
    if row.base_url_variable:
        proxied = environment | {row.base_url_variable: "https://proxy.example/v1"}
        assert sent(resolve(f"{provider}:m", base_url="https://proxy.example/v2", environment=proxied))[1] == KEY


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Installs a distribution whose entry point `acme` is the function `make` of a module with that text."""

    def install(text: str) -> None:
        (tmp_path / "acme_models.py").write_text(text)
        info = tmp_path / "acme-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[surefoot.models]\nacme = acme_models:make\n")
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        monkeypatch.delitem(sys.modules, "acme_models", raising=False)

    return install


def test_what_a_plug_in_would_pass_over_is_refused(plug_in: Callable[[str], None]) -> None:
    plug_in("from surefoot.testing.models import ScriptedModel\ndef make(name, settings): return ScriptedModel([])\n")
    assert resolve("acme:m", environment={}).name == "test:scripted"
    for base_url, key in (("https://gpu.example/v1", None), (None, KEY)):
        with pytest.raises(UsageError, match=r"'acme:m' is a plug-in's, .*: leave it out") as caught:
            resolve("acme:m", base_url=base_url, api_key=key, environment={})
        assert KEY not in str(caught.value)


@pytest.mark.parametrize("text", ["import no_such_module", "made = 1", "def make(name): return 1", "1 +"])
def test_a_broken_plug_in_is_named(plug_in: Callable[[str], None], text: str) -> None:
    plug_in(text)
    with pytest.raises(ConfigError, match=r"the plug-in 'acme' \(acme_models:make\) is broken: \w+Error"):
        resolve("acme:m", environment={})


def test_what_a_plug_in_says_of_itself_goes_through(plug_in: Callable[[str], None]) -> None:
    plug_in("from surefoot import UsageError\ndef make(name, settings): raise UsageError('no such deployment')\n")
    with pytest.raises(UsageError, match="no such deployment"):
        resolve("acme:m", environment={})


@cases("models/names")
def test_a_model_on_this_machine_is_given_longer(near: bool, hosts: str) -> None:
    for name in (*(f"{host}:1/v1#m" for host in hosts.split()), *(("ollama:m",) if near else ())):
        assert endpoint_of(resolve(name, environment={"SUREFOOT_API_KEY": "k"})).is_near is near
    assert ModelSettings().patience(near=near) == (Patience(600, 1800) if near else Patience(120, 600))

"""Who may do what: tokens, of which a server knows only the SHA-256, and what each lets. Source: spec/serving.md, 3."""

from __future__ import annotations

import secrets
import stat
import time
import tomllib
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from surefoot.server.answers import TENANT, Problem
from surefoot.types.errors import UsageError
from surefoot.types.ports import RunSummary
from surefoot.types.task import Author

Right = Literal["read", "start", "approve", "cancel", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)

ALL_AGENTS = "*"
MOST_WRONG = 10
WINDOW_S = 60.0
_MOST_PEERS = 10_000


@checked(frozen=True, config=ConfigDict(extra="forbid"))
class Token:
    """A table `[[token]]` of a tokens file. `speaks_as` is the author of the tasks that are started with it.

    A token without a tenant sees the runs of all.
    """

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rights: frozenset[Right]
    tenant: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9_-]{0,62})?$")] = ""
    agents: tuple[str, ...] = (ALL_AGENTS,)
    expires: datetime | date | None = None
    speaks_as: Author = "person"

    def is_over(self) -> bool:
        """Whether it has expired. A day counts to its end, a time without a zone is UTC."""
        match self.expires:
            case None:
                return False
            case datetime() as until:
                return datetime.now(UTC) >= (until if until.tzinfo else until.replace(tzinfo=UTC))
            case day:
                return datetime.now(UTC).date() > day

    @property
    def only_agents(self) -> tuple[str, ...]:
        """The agents that alone it sees; none where it sees all."""
        return () if ALL_AGENTS in self.agents else self.agents

    @property
    def only_labels(self) -> tuple[str, ...]:
        """The labels of the runs that alone it sees; none where it sees those of all tenants."""
        return (f"{TENANT}={self.tenant}",) if self.tenant else ()

    def sees_agent(self, name: str) -> bool:
        """Whether runs of that agent are its business; those of no agent are the business of who sees all."""
        return ALL_AGENTS in self.agents or name in self.agents

    def sees(self, run: RunSummary) -> bool:
        """Whether a run is there for whoever holds it."""
        return self.tenant in ("", run.labels.get(TENANT)) and self.sees_agent(run.agent)


def new_token() -> str:
    """A token: 32 random bytes."""
    return f"sft_{secrets.token_urlsafe(32)}"


def digest_of(token: str) -> str:
    """What a server keeps of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def table_of(token: Token) -> str:
    """The table for a tokens file."""
    text: Mapping[str, str | Sequence[str]] = {
        "name": token.name,
        "sha256": token.sha256,
        "rights": [one for one in RIGHTS if one in token.rights],
        "tenant": token.tenant,
        "agents": token.agents,
        "speaks_as": token.speaks_as,
    }
    lines = [f"{key} = {_toml(value)}" for key, value in text.items()]
    return "\n".join(("[[token]]", *lines, *([f"expires = {token.expires.isoformat()}"] if token.expires else ())))


def _toml(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"[{', '.join(map(_toml, value))}]"


def tokens_in(path: Path) -> tuple[Token, ...]:
    """The tokens of a file that only its owner may read. Raises `UsageError`."""
    try:
        said = path.read_text(encoding="utf-8-sig")
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise UsageError(f"--tokens {path}: others may read or write this file; run `chmod 600 {path}`")
        table = tomllib.loads(said)
    except OSError as error:
        raise UsageError(f"--tokens {path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"--tokens {path}: not valid TOML: {error}") from error
    if unknown := [name for name in table if name != "token"]:
        raise UsageError(f"--tokens {path}: unknown table or field {unknown[0]!r}; write one [[token]] for each token")
    try:
        tokens = TypeAdapter(tuple[Token, ...]).validate_python(table.get("token", ()))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]  # an input could be a token
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"--tokens {path}: token {where}: {first['msg']}") from error
    names = [one.name for one in tokens]
    if not tokens or len(set(names)) < len(names):
        raise UsageError(f"--tokens {path}: give at least one [[token]], and each a name of its own")
    return tokens


class Keyring:
    """All tokens of a server. `nobody` is who comes without one, where that is allowed."""

    def __init__(self, tokens: Sequence[Token], nobody: Token | None = None) -> None:
        self._tokens = tuple(tokens)
        self._nobody = nobody
        self._wrong: dict[str, deque[float]] = {}  # when somebody last came with wrong tokens

    def token_of(self, authorization: str, peer: str) -> Token:
        """Whose request it is. Raises `Problem`; who guesses is not told whether the last guess was right."""
        scheme, _, given = authorization.partition(" ")
        if not authorization and self._nobody is not None:
            return self._nobody
        now = time.monotonic()
        wrong = self._wrong.get(peer, deque[float](maxlen=MOST_WRONG))
        while wrong and wrong[0] <= now - WINDOW_S:
            wrong.popleft()
        if len(wrong) == MOST_WRONG:
            waits_s = wrong[0] + WINDOW_S - now
            raise Problem("too_fast", "too many wrong tokens came from your address", retry_after_s=waits_s)
        if not authorization:
            raise Problem("unauthorized", "this server asks for a token")
        digest, found = digest_of(given.strip()), None
        for token in self._tokens:  # all of them, so that the time tells nothing
            if compare_digest(token.sha256, digest) and scheme.lower() == "bearer" and not token.is_over():
                found = token
        if found is None:
            wrong.append(now)
            if len(self._wrong) >= _MOST_PEERS:
                self._wrong = {name: one for name, one in self._wrong.items() if one and one[-1] > now - WINDOW_S}
            self._wrong[peer] = wrong
            raise Problem("unauthorized", "the token is wrong or has expired")
        return found

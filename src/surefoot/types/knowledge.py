"""What is known about a workspace: facts with their place, files of conventions, and what a lookup gives."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal, get_args

from surefoot.types.dataclass import dataclass, field
from surefoot.types.errors import ConfigError, SurefootError
from surefoot.types.settings import Settings, is_whole, or_none, row, setting, share, tuple_of, whole

KnowledgeType = Literal["Fact", "Procedure", "Pattern", "Shared"]
KNOWLEDGE_TYPES: tuple[str, ...] = get_args(KnowledgeType)

ROOT = "."
"""The scope of the workspace's root. No scope at all is ""."""

CONVENTION_FILES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")

LEAST_LIMIT, MOST_LIMIT = 1, 50  # how many entries can be asked for


class KnowledgeError(SurefootError):
    """The knowledge store could not be read or written. The message names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """One thing that is known. Source: spec/primitives.md, 4.1 and 4.4.

    A sentence may stand whole in `subject`. `scope` is the directory that it holds for, relative to the workspace
    (`ROOT` for all of it), "" for none; `language` "" for any. `verified_by` names the person who vouches for it, ""
    while nobody does. `source` says where it came from: "operator", "model" (then `run_id` and `call_id` lead to all
    that the model had read), or the path of a file. The store gives `id` ("" for what is not in it) and `created_at`,
    seconds since the epoch. Raises `ConfigError`.
    """

    subject: str
    predicate: str = ""
    object: str = ""
    type: KnowledgeType = "Fact"
    confidence: float = 0.8
    scope: str = ""
    language: str = ""
    verified_by: str = ""
    source: str = ""
    run_id: str = ""
    call_id: str = ""
    id: str = ""
    created_at: float = 0.0

    def __post_init__(self) -> None:
        for name in ("subject", "predicate", "object", "scope", "language", "verified_by", "source"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(name, getattr(self, name), "give text")
        if not self.content.strip():
            raise ConfigError("subject", self.subject, "there is nothing to know; give text")
        if self.type not in KNOWLEDGE_TYPES:
            raise ConfigError("type", self.type, f"choose one of {', '.join(KNOWLEDGE_TYPES)}")
        share("confidence", self.confidence)

    @property
    def content(self) -> str:
        """The parts, joined by a space: what is shown, searched and compared."""
        return " ".join(part for part in (self.subject, self.predicate, self.object) if part)

    @property
    def verified(self) -> bool:
        """Whether a person vouches for it; only then can it be a convention."""
        return bool(self.verified_by.strip())

    @property
    def origin(self) -> str:
        """The level that it belongs to, in words; "" when it is not a convention."""
        if self.scope:
            return "(root)" if self.scope == ROOT else self.scope
        return f"language {self.language}" if self.language else ""


@dataclass(frozen=True, slots=True)
class ConventionFile:
    """A file of conventions as it was read. Source: spec/primitives.md, 4.5.

    `path` and `scope` are relative to the workspace, `size` is the whole in bytes; `text` is its beginning when the
    files together were too long. `digest`: SHA-256 (hex) of what was read, before any cut.
    """

    path: str
    scope: str
    text: str
    size: int
    digest: str

    @property
    def kept(self) -> int:
        """How many bytes of it `text` holds."""
        return len(self.text.encode())

    @property
    def is_cut(self) -> bool:
        """Whether `text` is not the whole."""
        return self.kept < self.size


@dataclass(frozen=True, slots=True)
class ConventionResult:
    """Conventions, nearest first. `more`: how many there are beyond the limit; counting stops at about 100 in all.

    `errors` say which source could not be asked; then there may be others.
    """

    items: tuple[Knowledge, ...] = ()
    more: int = 0
    errors: tuple[str, ...] = ()


def _path(name: str, value: object) -> object:
    path = str(value) if isinstance(value, PurePath) else value
    if not (isinstance(path, str) and path.strip() and "\0" not in path):
        raise ConfigError(name, value, "give a path")
    return path


@dataclass(frozen=True, slots=True)
class ConventionsConfig(Settings):
    """Where conventions come from. Raises `ConfigError`. Source: spec/primitives.md, 4.5 and 5."""

    root: str = field(metadata=row(_path, "the workspace; in Python it has to be given", "inside"))
    files: tuple[str, ...] = setting(
        CONVENTION_FILES,
        tuple_of(
            lambda name: (
                isinstance(name, str)
                and name not in ("", ".", "..")
                and name.isprintable()
                and not {"/", "\\"} & {*name}
            ),
            "give a list of plain file names, without folders; () for none",
        ),
        "in each directory the first that is there and not empty counts; `[]` reads none",
        found="pages",
    )
    max_bytes: int = setting(32_768, whole(0), "of all files of one reading together")
    store: str | None = setting(
        None, or_none(_path, "no store"), "path of the knowledge store; none: nothing is stored", found="default"
    )


def checked_limit(limit: object) -> int:
    """A number of entries that can be asked for. Raises `ConfigError`."""
    if not is_whole(limit, LEAST_LIMIT) or limit > MOST_LIMIT:
        raise ConfigError("limit", limit, f"give a whole number from {LEAST_LIMIT} to {MOST_LIMIT}")
    return limit

"""Which conventions hold in a directory: the nearest first, each said once.

The levels are the directory, all above it up to the root, and last what holds for a language wherever it is written.
Source: spec/primitives.md, 4.3; seed 001, directory-scoped conventions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.knowledge.directories import Directories, levels
from surefoot.knowledge.files import FilesRead, read_files, shown_text
from surefoot.knowledge.languages import language_named, plain
from surefoot.knowledge.store import KnowledgeStore, Match
from surefoot.knowledge.words import content_key, matching
from surefoot.types.errors import ConfigError
from surefoot.types.knowledge import (
    ConventionFile,
    ConventionResult,
    ConventionsConfig,
    Knowledge,
    KnowledgeError,
    checked_limit,
)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where conventions are looked for. `store` None: files only."""

    config: ConventionsConfig
    directories: Directories
    store: KnowledgeStore | None


def retrieve(sources: Sources, directory: str, query: str, limit: int) -> ConventionResult:
    """Conventions for a directory and a language or topic. Blocks.

    A query that names a language (by name, alias or file extension, or as entries of the store do) finds what is for
    that or no language; any other must have a word in the text. At each level its file comes first, then entries of the
    store by confidence. Of two that say the same the nearer counts. Raises `ConfigError` for what cannot be meant; a
    source that fails is told in `errors`.
    """
    checked_limit(limit)
    if not query.strip():
        raise ConfigError("query", query, "give a language or a topic")
    scopes = levels(sources.directories.scope_of(directory))
    read = read_files(sources.directories, sources.config, scopes[0])
    errors = list(read.errors)
    found: list[Match] = []
    language = language_named(query)
    if sources.store is not None:
        try:
            if language is None and sources.store.knows_language(plain(query)):
                language = plain(query)
            found = _stored(sources.store, scopes, query, language)
        except KnowledgeError as error:
            errors.append(str(error))
    files = _files(read, query, is_topic=language is None)
    chosen = _once([*((scopes.index(file.scope), file) for file in files), *((match.level, match) for match in found)])
    shown, more = chosen[:limit], max(len(chosen) - limit, 0)
    loaded: dict[int, Knowledge] = {}
    if sources.store is not None:
        try:
            loaded = sources.store.load([one.number for one in shown if isinstance(one, Match)])
        except KnowledgeError as error:
            errors.append(str(error))
    items = [_of_file(one) if isinstance(one, ConventionFile) else loaded.get(one.number) for one in shown]
    return ConventionResult(tuple(item for item in items if item is not None), more, tuple(errors))


def _stored(store: KnowledgeStore, scopes: Sequence[str], query: str, language: str | None) -> list[Match]:
    return store.on_topic(scopes, query) if language is None else store.of_language(scopes, language)


def _files(read: FilesRead, query: str, *, is_topic: bool) -> list[ConventionFile]:
    if not is_topic:
        return list(read.files)
    texts = [f"{file.path} {file.text}" for file in read.files]
    return [read.files[at] for at in sorted(matching(texts, query))]


def _once(found: Sequence[tuple[int, ConventionFile | Match]]) -> list[ConventionFile | Match]:
    """Nearest first, in the order given inside a level; of those that say the same the first."""
    kept: dict[bytes, ConventionFile | Match] = {}
    for _, one in sorted(found, key=lambda pair: pair[0]):
        kept.setdefault(_key(one) if isinstance(one, ConventionFile) else one.key, one)
    return list(kept.values())


def _key(file: ConventionFile) -> bytes:
    """What it says; of one that was cut nobody knows, so only its copies are the same."""
    return file.digest.encode() if file.is_cut else content_key(file.text)


def _of_file(file: ConventionFile) -> Knowledge:
    return Knowledge(shown_text(file).strip(), type="Pattern", confidence=1.0, scope=file.scope, source=file.path)

"""What is known about a workspace, and which conventions hold in a directory: the nearest first, each said once.

The levels are the directory, all above it up to the root, and last what holds for a language wherever it is written.
Source: spec/primitives.md, section 4; seed 001, directory-scoped conventions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from surefoot.knowledge.directories import (
    Directories,
    FilesRead,
    language_named,
    levels,
    plain,
    read_files,
    shown_text,
    stored_language,
)
from surefoot.knowledge.store import KnowledgeStore, Match, content_key, matching
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.knowledge import (
    ROOT,
    ConventionFile,
    ConventionResult,
    ConventionsConfig,
    Knowledge,
    KnowledgeError,
    checked_limit,
)

P = ParamSpec("P")
R = TypeVar("R")

OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where conventions are looked for. `store` None: files only."""

    config: ConventionsConfig
    directories: Directories
    store: KnowledgeStore | None


class KnowledgeBridge:
    """Recall, conventions and storing for one workspace. Source: seed 001; spec/primitives.md, section 4.

    Disk and database are used in one thread of its own, so the event loop never waits for them; when a caller is
    cancelled, what was begun is still done. One bridge serves any number of runs. Nothing is opened before the first
    use. Methods raise `ConfigError` for what cannot be meant, and `KnowledgeError` when the store cannot be used;
    making a bridge raises `ConfigError` when the root is no directory.
    """

    def __init__(self, config: ConventionsConfig) -> None:
        self.config = config
        store = KnowledgeStore(config.store) if config.store else None
        self._sources = Sources(config, Directories(config.root), store)
        self._thread: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    @property
    def has_store(self) -> bool:
        """Whether there is a store; without one there are files only."""
        return self._sources.store is not None

    async def retrieve_scoped_conventions(self, directory: str, query: str, limit: int = 5) -> ConventionResult:
        """Conventions for a directory, nearest first: see `retrieve`. `limit` is 1 to 50."""
        return await self._in_thread(retrieve, self._sources, directory, query, limit)

    async def recall(self, query: str, limit: int = 5) -> tuple[Knowledge, ...]:
        """Entries that hold a word of the query, best first, verified or not; none without a store."""
        checked_limit(limit)
        if self._sources.store is None:
            return ()
        return await self._in_thread(self._sources.store.search, query, limit)

    async def add(self, entries: Iterable[Knowledge], *, by: str = OPERATOR) -> tuple[Knowledge, ...]:
        """Keep entries, all or none; they are given back as they are kept, with their ids.

        `by` vouches for them; with "" they are unverified, and no conventions until `verify`. An entry's `scope` is
        read as a directory of the workspace, its `language` by name, alias or extension. Adding what is there already
        changes nothing, unless somebody vouches for it now.
        """
        return await self._in_thread(self._add, tuple(entries), by)

    async def verify(self, entry_id: str, *, by: str) -> Knowledge:
        """Let a person, `by`, vouch for an entry. Raises `UsageError` for an unknown one and for no name."""
        return await self._in_thread(self._store().verify, entry_id, by=by)

    async def files(self, directory: str = ROOT) -> FilesRead:
        """The files of conventions that count for a directory, root first, read anew; their digests tell changes."""
        return await self._in_thread(self._files, directory)

    async def aclose(self) -> None:
        """Close the store; a later use opens it again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            if self._sources.store is not None:
                await asyncio.wrap_future(thread.submit(self._sources.store.close))
            thread.shutdown()

    def _add(self, entries: tuple[Knowledge, ...], by: str) -> tuple[Knowledge, ...]:
        scope_of = self._sources.directories.scope_of
        placed = [
            replace(
                entry,
                scope=scope_of(entry.scope) if entry.scope else "",
                language=stored_language(entry.language) if entry.language else "",
                source=entry.source or OPERATOR,
            )
            for entry in entries
        ]
        return self._store().add(placed, by=by)

    def _files(self, directory: str) -> FilesRead:
        directories = self._sources.directories
        return read_files(directories, self.config, directories.scope_of(directory))

    def _store(self) -> KnowledgeStore:
        if self._sources.store is None:
            raise UsageError("there is no knowledge store; name one with ConventionsConfig(store=…)")
        return self._sources.store

    async def _in_thread(self, do: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        if self._process != os.getpid():  # neither the thread nor the open file survives
            raise UsageError("this bridge was made before the process was forked; make a new one in the child")
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "surefoot-knowledge")
        return await asyncio.wrap_future(self._thread.submit(do, *args, **keywords))


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
            if language is None:
                found = sources.store.on_topic(scopes, query)
            else:
                found = sources.store.of_language(scopes, language)
        except KnowledgeError as error:
            errors.append(str(error))
    files = read.files
    if language is None:
        files = [files[at] for at in sorted(matching([f"{file.path} {file.text}" for file in files], query))]
    placed = [*((scopes.index(file.scope), file) for file in files), *((match.level, match) for match in found)]
    kept: dict[bytes, ConventionFile | Match] = {}
    for _, one in sorted(placed, key=lambda pair: pair[0]):  # in the order given inside a level
        kept.setdefault(_key(one) if isinstance(one, ConventionFile) else one.key, one)
    chosen = list(kept.values())
    shown, more = chosen[:limit], max(len(chosen) - limit, 0)
    loaded: dict[int, Knowledge] = {}
    if sources.store is not None:
        try:
            loaded = sources.store.load([one.number for one in shown if isinstance(one, Match)])
        except KnowledgeError as error:
            errors.append(str(error))
    items = [
        loaded.get(one.number)
        if isinstance(one, Match)
        else Knowledge(shown_text(one).strip(), type="Pattern", confidence=1.0, scope=one.scope, source=one.path)
        for one in shown
    ]
    return ConventionResult(tuple(item for item in items if item is not None), more, tuple(errors))


def _key(file: ConventionFile) -> bytes:
    """What it says; of one that was cut nobody knows, so only its copies are the same."""
    return file.digest.encode() if file.is_cut else content_key(file.text)

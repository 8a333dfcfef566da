"""What is known about a workspace, and which conventions hold in a directory: the nearest first, each said once.

The levels are the directory, all above it up to the root, and last what holds for a language wherever it is written.
Source: spec/primitives.md, section 4; seed 001, directory-scoped conventions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import ParamSpec, TypeVar

from surefoot.knowledge import directories
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


class KnowledgeBridge:
    """Recall, conventions and storing for one workspace. Source: seed 001; spec/primitives.md, section 4.

    Disk and database are used in one thread of its own, so the event loop never waits for them; when a caller is
    cancelled, what was begun is still done. One bridge serves any number of runs. Nothing is opened before the first
    use. Methods raise `ConfigError` for what cannot be meant, and `KnowledgeError` when the store cannot be used;
    making a bridge raises `ConfigError` when the root is not a directory.
    """

    def __init__(self, config: ConventionsConfig) -> None:
        self.config = config
        self.store = KnowledgeStore(config.store) if config.store else None
        self._directories = directories.Directories(config.root)
        self._thread: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    async def retrieve_scoped_conventions(self, directory: str, query: str, limit: int = 5) -> ConventionResult:
        """Conventions for a directory, nearest first: see `retrieve`. `limit` is 1 to 50."""
        return await self._in_thread(self.retrieve, directory, query, limit)

    async def recall(self, query: str, limit: int = 5) -> tuple[Knowledge, ...]:
        """Entries that hold a word of the query, best first, verified or not; none without a store."""
        checked_limit(limit)
        return await self._in_thread(self.store.search, query, limit) if self.store is not None else ()

    async def add(self, entries: Iterable[Knowledge], *, by: str = OPERATOR) -> tuple[Knowledge, ...]:
        """Keep entries, all or none; they are given back as they are kept, with their ids.

        `by` vouches for them; with "" they are unverified, and no conventions until `verify`. An entry's `scope` is
        read as a directory of the workspace, its `language` by name, alias or extension. Adding what is there already
        changes nothing, unless somebody vouches for it now.
        """
        given, scope_of = tuple(entries), self._directories.scope_of

        def add() -> tuple[Knowledge, ...]:
            placed = [
                replace(
                    entry,
                    scope=scope_of(entry.scope) if entry.scope else "",
                    language=directories.stored_language(entry.language) if entry.language else "",
                    source=entry.source or OPERATOR,
                )
                for entry in given
            ]
            return self._needed_store().add(placed, by=by)

        return await self._in_thread(add)

    async def verify(self, entry_id: str, *, by: str) -> Knowledge:
        """Let a person, `by`, vouch for an entry. Raises `UsageError` for an unknown one and for no name."""
        return await self._in_thread(self._needed_store().verify, entry_id, by=by)

    async def files(self, directory: str = ROOT) -> directories.FilesRead:
        """The files of conventions that count for a directory, root first, read anew; their digests tell changes."""
        places = self._directories
        return await self._in_thread(lambda: directories.read_files(places, self.config, places.scope_of(directory)))

    async def aclose(self) -> None:
        """Close the store; a later use opens it again."""
        thread, self._thread = self._thread, None
        if thread is not None:
            if self.store is not None:
                await asyncio.wrap_future(thread.submit(self.store.close))
            thread.shutdown()

    def retrieve(self, directory: str, query: str, limit: int) -> ConventionResult:
        """Conventions for a directory and a language or topic. Blocks.

        A query that names a language (by name, alias or file extension, or as entries of the store do) finds what is
        for that or no language; any other must have a word in the text. At each level its file comes first, then
        entries of the store by confidence. Of two that say the same the nearer counts. Raises `ConfigError` for what
        cannot be meant; a source that fails is told in `errors`.
        """
        checked_limit(limit)
        if not query.strip():
            raise ConfigError("query", query, "give a language or a topic")
        store, scopes = self.store, directories.levels(self._directories.scope_of(directory))
        read = directories.read_files(self._directories, self.config, scopes[0])
        errors = list(read.errors)
        found: list[Match] = []
        language = directories.language_named(query)
        try:
            if store is not None:
                if language is None and store.knows_language(directories.plain(query)):
                    language = directories.plain(query)
                found = store.on_topic(scopes, query) if language is None else store.of_language(scopes, language)
        except KnowledgeError as error:
            errors.append(str(error))
        files = read.files
        if language is None:
            files = [files[at] for at in sorted(matching([f"{file.path} {file.text}" for file in files], query))]
        placed = [*((scopes.index(file.scope), file) for file in files), *((match.level, match) for match in found)]
        kept: dict[bytes, ConventionFile | Match] = {}
        for _, one in sorted(placed, key=lambda pair: pair[0]):  # in the order given inside a level
            # what it says; of a file that was cut nobody knows, so only its copies are the same
            key = one.key if isinstance(one, Match) else one.digest.encode() if one.is_cut else content_key(one.text)
            kept.setdefault(key, one)
        shown = list(kept.values())[:limit]
        loaded: dict[int, Knowledge] = {}
        try:
            if store is not None:
                loaded = store.load([one.number for one in shown if isinstance(one, Match)])
        except KnowledgeError as error:
            errors.append(str(error))
        items = [
            loaded.get(one.number)
            if isinstance(one, Match)
            else Knowledge(
                directories.shown_text(one).strip(), type="Pattern", confidence=1.0, scope=one.scope, source=one.path
            )
            for one in shown
        ]
        given = tuple(item for item in items if item is not None)
        return ConventionResult(given, max(len(kept) - limit, 0), tuple(errors))

    def _needed_store(self) -> KnowledgeStore:
        if self.store is None:
            raise UsageError("no knowledge store is set; name one with ConventionsConfig(store=…)")
        return self.store

    async def _in_thread(self, do: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        if self._process != os.getpid():  # neither the thread nor the open file survives
            raise UsageError("this bridge was made before the process was forked; make a new one in the child")
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "surefoot-knowledge")
        return await asyncio.wrap_future(self._thread.submit(do, *args, **keywords))

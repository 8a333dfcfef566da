"""llama.cpp in this process: one loaded model, one generation at a time, in a thread of its own.

A second generation at the same time would cost both of them nearly all that it gains (measured on two cores: two side
by side take 7.0 s, one after the other 8.4 s), and it would halve the context. So requests queue, first come first
served, and a request whose caller is gone is not begun.
"""

from __future__ import annotations

import atexit
import importlib
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from surefoot.models.weights import verify
from surefoot.types.errors import ConfigError, ModelError, extra_needed

JsonObject = Mapping[str, object]
OnEvent = Callable[[JsonObject], bool]
"""Gets each event of a generation, in the worker thread; gives whether to stop."""

_BATCH_TOKENS = 64
"""Tokens of a prompt taken at once. Stopping waits for a batch to end (0.8 s here); larger ones were not faster."""

_PREFIX_CACHE_MIB = 512
"""Room for the beginnings of other conversations, so that runs that take turns do not read theirs again."""


class Generator(Protocol):
    """What is used of `xllamacpp.Server`, which ships no types."""

    def handle_completions(self, prompt: JsonObject, callback: OnEvent, /) -> object:
        """Run one completion; each event goes to the callback, which stops it by giving True."""
        ...


Load = Callable[[], Generator]


class Engine:
    """One model, loaded at its first use and freed when the last of its users has closed it."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._generator: Generator | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._users: set[int] = set()

    def submit(self, user: int, body: JsonObject, on_event: OnEvent) -> Future[None]:
        """Queue one generation. The future ends with it, or with the error of loading the model."""
        self._users.add(user)
        if self._worker is None:
            self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="surefoot-llama")
            atexit.register(self.close)
        return self._worker.submit(self._generate, body, on_event)

    def leave(self, user: int) -> Future[None] | None:
        """This user is done. The last one out frees the model, after what is queued; the future says when."""
        self._users.discard(user)
        if self._users or self._worker is None:
            return None
        return self._worker.submit(self._free_if_unused)

    def close(self) -> None:
        """Free the model when the process ends, so that no thread of it runs into the teardown."""
        if self._worker is not None:
            self._worker.shutdown(wait=True, cancel_futures=True)
        self._generator = None

    def _generate(self, body: JsonObject, on_event: OnEvent) -> None:
        if on_event({"started": True}):
            return
        if self._generator is None:
            self._generator = self._load()
        if not on_event({"loaded": True}):
            self._generator.handle_completions(body, on_event)

    def _free_if_unused(self) -> None:
        if not self._users:
            self._generator = None


def load(path: Path, context_tokens: int, threads: int) -> Generator:
    """Load a model file; takes about two seconds and keeps 2 GB. Nothing is printed. Blocks.

    The library opens a socket in any case. Nobody needs it: on Unix it lies in a private directory that is removed as
    soon as the model is loaded, elsewhere it is bound to this machine and asks for a key that nobody knows.
    """
    library = import_library()
    params = library.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = _PREFIX_CACHE_MIB
    params.fit_params = False  # a trial load to find sizes that we already know
    params.warmup = False
    params.verbosity = -1
    params.ui = False
    params.n_threads_http = 1
    params.api_keys = [secrets.token_urlsafe(32)]
    with tempfile.TemporaryDirectory(prefix="surefoot-", ignore_cleanup_errors=True) as private:
        if sys.platform != "win32":
            params.hostnames = [f"{private}/s.sock"]
        try:
            return cast("Generator", library.Server(params))
        except RuntimeError as error:
            raise ModelError(f"llama.cpp could not load {path}: {error}; run `surefoot model pull`") from error


def import_library() -> Any:
    """The module `xllamacpp`; Any because it ships no types. Raises `ConfigError` when it is not installed."""
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise ConfigError(
            "model", "local", f"the embedded model needs a package ({error}); {extra_needed('local')}"
        ) from error


@cache
def shared_engine(path: Path, context_tokens: int, threads: int) -> Engine:
    """The one engine of this process for these settings: a model of two gigabytes is not loaded twice."""

    def load_verified() -> Generator:
        verify(path)
        return load(path, context_tokens, threads)

    return Engine(load_verified)


def physical_cores() -> int:
    """Cores that this process may use; two threads of one core count once, since they share its arithmetic."""
    if sys.platform != "linux":
        return os.cpu_count() or 1
    allowed = os.sched_getaffinity(0)
    siblings: set[str] = set()
    for cpu in allowed:
        try:
            siblings.add(Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text())
        except OSError:  # a container that hides it
            return len(allowed)
    return len(siblings)

"""A small sentence encoder in this process: how near texts are in meaning, on onnxruntime.

Each text is encoded by itself, since the 8-bit arithmetic of a batch depends on all that is in it: so a text has one
vector, whatever it came with, and vectors of tools can be kept on disk. Needs the extra `encoder`, and its two files
(`surefoot model pull --encoder`). Source: spec/planning.md, section 15.
"""

from __future__ import annotations

import asyncio
import importlib
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from surefoot.models.files import ENCODER, VOCABULARY, cache_directory, is_present, verify, weights_file
from surefoot.types.errors import ConfigError, ModelError, extra_needed

MOST_NUMBERS = 128
"""Pieces of a text that are read; the model was trained on so many."""
_AT_ONCE = 500
"""Vectors that are read, made and written together."""
UNKNOWN, BEGIN, END = 100, 101, 102
"""The numbers of `[UNK]`, `[CLS]` and `[SEP]` in the vocabulary."""
_LONGEST_WORD = 100
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
_SIGNS = frozenset("$+<=>^`|~")
"""Signs of ASCII that BERT counts as punctuation and Unicode as symbols."""

Encode = Callable[[str], bytes]
"""A text's vector of length 1, as 32-bit floats."""


class LocalEncoder:
    """Remembers the vectors of texts in `file`, by hash; None: in memory. One answer at a time. Use `from_default`."""

    def __init__(self, encode: Encode, file: Path | None = None) -> None:
        self._encode = encode
        self._file = file
        self._known: dict[str, bytes] = {}
        self._lock = Lock()

    @classmethod
    def from_default(cls, directory: Path | None = None) -> LocalEncoder:
        """All-MiniLM-L6-v2 from its files in `directory` (the user's cache). Raises `ConfigError` with the remedy."""
        where = directory or cache_directory()
        paths = [weights_file(weights, where) for weights in (ENCODER, VOCABULARY)]
        for path, weights in zip(paths, (ENCODER, VOCABULARY), strict=True):
            if not is_present(path, weights):
                told = f"its file is not at {path}: run `surefoot model pull --encoder`"
                raise ConfigError("encoder", weights.name, told)
            verify(path, weights, where)
        return cls(_encode_of(*paths), where / "vectors" / f"{ENCODER.sha256[:16]}.sqlite")

    async def likeness(self, asked: Sequence[str], texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """For each of `texts` its cosine to each of `asked`."""
        return await asyncio.to_thread(self._likeness, asked, texts)

    def _likeness(self, asked: Sequence[str], texts: Sequence[str]) -> list[list[float]]:
        if not asked or not texts:
            return [[] for _ in texts]
        with self._lock:
            missing = iter([text for text in dict.fromkeys(texts) if text not in self._known])
            while some := tuple(islice(missing, _AT_ONCE)):  # an interruption loses the last few alone
                self._known.update(self._encode_all(some) if self._file is None else self._fetch(self._file, some))
            numpy = _library("numpy")
            rows, columns = (
                numpy.frombuffer(b"".join(vectors), numpy.float32).reshape(len(vectors), -1)
                for vectors in ([self._known[text] for text in texts], [self._encode(text) for text in asked])
            )
            return (rows @ columns.T).tolist()

    def _encode_all(self, texts: Iterable[str]) -> dict[str, bytes]:
        return {text: self._encode(text) for text in texts}

    def _fetch(self, file: Path, texts: Sequence[str]) -> dict[str, bytes]:
        """The vectors out of the file; those that are not there are made, and kept there."""
        keys = {_key(text): text for text in texts}
        marks = ",".join("?" * len(keys))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(file, timeout=10.0)) as db, db:
                db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")
                stored = db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", [*keys])  # noqa: S608  # only marks
                found = {keys[key]: vector for key, vector in stored}
                made = self._encode_all(text for text in texts if text not in found)
                db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", ((_key(t), v) for t, v in made.items()))
        except (OSError, sqlite3.Error) as error:
            raise ModelError(f"the vectors of the encoder at {file}: {error}; remove that file") from error
        return {**found, **made}


def _key(text: str) -> bytes:
    return sha256(text.encode(errors="surrogatepass")).digest()


def _encode_of(model: Path, vocabulary: Path) -> Encode:
    """What encodes a text with the model of these files: the mean of its pieces' vectors, brought to length 1."""
    runtime, numpy = _library("onnxruntime"), _library("numpy")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # texts are short: a second thread costs more than it gives
    session = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    pieces = WordPiece.of(vocabulary.read_text(encoding="utf-8"))

    def encode(text: str) -> bytes:
        numbers = numpy.array([pieces.numbers(text, MOST_NUMBERS)], numpy.int64)
        mask, types = numpy.ones_like(numbers), numpy.zeros_like(numbers)
        inputs = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": types}
        mean = session.run(None, inputs)[0][0].mean(0)
        return (mean / numpy.linalg.norm(mean)).astype(numpy.float32).tobytes()

    return encode


def _library(name: str) -> Any:
    """A module of the extra; Any because onnxruntime ships no types. Raises `ConfigError` when it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError("encoder", "local", f"it needs a package ({error}); {extra_needed('encoder')}") from error


class WordPiece:
    """WordPiece: text as the numbers that a BERT encoder reads. Source: Devlin et al. 2018, BERT's uncased tokenizer.

    Words in lower case without accents, split at blanks, punctuation and Chinese characters, each taken apart greedily
    into the longest pieces that the vocabulary holds: piece -> number, where a piece inside a word begins with `##`.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary

    @classmethod
    def of(cls, text: str) -> WordPiece:
        """From the text of a `vocab.txt`: a piece a line, numbered from 0."""
        return cls({piece: at for at, piece in enumerate(text.splitlines())})

    def numbers(self, text: str, most: int) -> list[int]:
        """A text as at most `most` numbers, its beginning and end included; what is too long is cut."""
        found: list[int] = []
        for word in "".join(map(_spaced, unicodedata.normalize("NFD", text.lower()))).split():
            found += self._pieces(word)
            if len(found) >= most - 2:
                break
        return [BEGIN, *found[: most - 2], END]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [UNKNOWN]
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._vocabulary.get(("##" if start else "") + word[start:end])
                if number is not None:
                    break
            else:
                return [UNKNOWN]
            found.append(number)
            start = end
        return found


@lru_cache(4096)
def _spaced(sign: str) -> str:
    """A character, alone between blanks where it is a word of its own; "" where it does not count."""
    kind = unicodedata.category(sign)
    if kind == "Mn":
        return ""
    if kind[0] == "C":
        return " " if sign in "\t\n\r" else ""
    return f" {sign} " if kind[0] == "P" or sign in _SIGNS or _CHINESE.match(sign) else sign

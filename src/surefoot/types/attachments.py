"""What comes with a task or a result beside its words: a text, or a file that a model takes as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Final, Literal

from surefoot.types.dataclass import dataclass, field
from surefoot.types.errors import ConfigError, UsageError

Trust = Literal["trusted", "untrusted"]

IMAGES, PDF, AUDIO = "images", "pdf", "audio"  # traits: "yes" says that a model takes such files

TRAIT_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), IMAGES),
    "application/pdf": PDF,
    **dict.fromkeys(("audio/wav", "audio/mpeg"), AUDIO),
}
"""The media types that a wire carries, each with the trait of a model that takes it."""

MOST_BYTES = 20 * 1024 * 1024  # bytes of one file; providers take less than that

_SIGNS: Final = (  # how a file begins, and what stands eight bytes further on
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF8", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wav"),
    (b"%PDF-", b"", "application/pdf"),
    *((start, b"", "audio/mpeg") for start in (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
)
_IMAGE_TOKENS = 1_600
_BYTES_A_TOKEN = {PDF: 30, AUDIO: 2_000}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text or a file that comes with a task or a result. It is material, not instruction.

    Of a file, `media_type` is one of `TRAIT_OF`, `size` its bytes, and `text` the line that stands for it where it
    cannot be shown. The journal keeps its bytes once, under their SHA-256 (`digest`); no event holds them.
    """

    name: str
    text: str
    trust: Trust = "untrusted"
    media_type: str = ""
    digest: str = ""
    size: int = 0
    _data: bytes | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def from_path(cls, path: str | Path, *, media_type: str = "", trust: Trust = "untrusted") -> Attachment:
        """The file at a path; see `from_bytes`. Raises `UsageError` when it cannot be read, too."""
        if not isinstance(path, str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise ConfigError("attachments", path, "give paths, or Attachment")
        path = Path(path)
        try:
            if not path.is_file():
                raise UsageError(f"{path}: it is a folder; name a file" if path.is_dir() else f"{path}: no such file")
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        return cls.from_bytes(data, path.name, media_type=media_type, trust=trust)

    @classmethod
    def from_bytes(
        cls, data: bytes, name: str = "file", *, media_type: str = "", trust: Trust = "untrusted"
    ) -> Attachment:
        """Bytes as what they are: a PNG, JPEG, GIF, WebP, PDF, WAV or MP3 file, else UTF-8 text.

        What the bytes say of themselves counts for more than `media_type`. Raises `UsageError` for anything else.
        """
        if len(data) > MOST_BYTES:
            raise UsageError(f"{name} is larger than {MOST_BYTES:,} bytes; attach a smaller file")
        kind = media_type_of(data) or media_type.partition(";")[0].strip().lower()
        if kind not in TRAIT_OF:
            try:
                text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
            except UnicodeDecodeError:
                text = "\0"
            if "\0" in text:
                told = f"{name} is {kind}, which no" if kind else f"{name} is neither text in UTF-8 nor a file that a"
                raise UsageError(f"{told} model can read; attach text, PNG, JPEG, GIF, WebP, PDF, WAV or MP3")
            return cls(name, text, trust)
        made = cls(name, f"[{kind}, {len(data):,} bytes]", trust, kind, sha256(data).hexdigest(), len(data))
        made.keep(data)
        return made

    @property
    def line(self) -> str:
        """The one line that says which file this is."""
        return f"[{self.name}: {self.text[1:-1]}]"

    @property
    def trait(self) -> str:
        """The trait of a model that takes it; "" for a text, which all do."""
        return TRAIT_OF.get(self.media_type, "")

    @property
    def tokens(self) -> int:
        """About how much of a model's window the file takes."""
        return max(_IMAGE_TOKENS, self.size // _BYTES_A_TOKEN[self.trait]) if self.trait != IMAGES else _IMAGE_TOKENS

    @property
    def is_at_hand(self) -> bool:
        """Whether `data` can be read without asking a journal."""
        return self._data is not None

    @property
    def data(self) -> bytes:
        """The bytes of the file. Raises `UsageError` where only a journal has them."""
        if self._data is None:
            raise UsageError(f"the bytes of {self.name} are not at hand: attach it again with Attachment.from_path")
        return self._data

    def keep(self, data: bytes) -> None:
        """Hold the bytes that `digest` names, so that no journal is asked for them again."""
        object.__setattr__(self, "_data", data)


Attached = Sequence[Attachment | str | Path]  # what comes with a task: attachments, or the paths of files


def files_in(attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Those that are files, not texts."""
    return tuple(one for one in attachments if one.digest)


def media_type_of(data: bytes) -> str:
    """What the bytes are by how they begin; "" where that is none of the files that a wire carries."""
    found = (kind for start, then, kind in _SIGNS if data.startswith(start) and data[8:].startswith(then))
    return next(found, "")

"""What is known of models beforehand, and what runs have learnt (in one small file). Source: spec/react.md, 2."""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from surefoot.core.text.words import table
from surefoot.models.json_edge import items, mapping, read, text, write
from surefoot.types.errors import ConfigError
from surefoot.types.messages import Traits

_IN_WORDS = {r"\w+": "the name of a field, yes or no", r"\d+": "a number of tokens, as a text"}

_VALUES: Mapping[str, str] = {
    "yes or no": "native_tools json_schema stop temperature top_p seed stream_usage own_reasoning alternation store "
    "prompt_cache early_answers optional_arguments repeats images pdf audio",
    "on, off or no": "parallel_calls",
    "yes, no, developer, system or user": "system_role",
    "adaptive, budget or no": "reasoning_effort",
    "max_tokens, max_completion_tokens or no": "max_tokens_field",
    "null, empty or blank": "null_content",
    "any, short or alnum9": "id_shape",
    "beside_tools or no": "answer_schema",
    r"\w+": "reasoning_echo",
    r"\d+": "context_tokens max_output_tokens",
}

ID_SHAPES = {"alnum9": (re.compile("[A-Za-z0-9]{9}"), 9), "short": (re.compile(".{1,40}"), 32)}
"""What an id of a call may be, and how long one is that is put in the place of another, by the trait `id_shape`."""


def id_in(shape: str, call_id: str) -> str:
    """An id as the server takes it: that of a call which another model made may have any shape."""
    taken, chars = ID_SHAPES.get(shape, (None, 0))
    if taken is None or taken.fullmatch(call_id):
        return call_id
    return sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:chars]


TRAITS: Mapping[str, re.Pattern[str]] = {
    trait: re.compile(re.sub(", | or ", "|", values)) for values, traits in _VALUES.items() for trait in traits.split()
}
"""The traits that a user can declare, and what each may be."""

SMALL: Traits = MappingProxyType(
    {
        "native_tools": "no",
        "json_schema": "yes",
        "parallel_calls": "no",
        "early_answers": "yes",  # it answers before it has looked, if it may
        "optional_arguments": "no",  # it fills in whatever it may, and makes it up
        "repeats": "yes",  # it writes its last step again
    }
)
"""What the embedded model is known by, and a small model of a server's where its user says so."""


def declared_traits(given: Mapping[str, str] | str) -> Traits:
    """The traits that a user declares of a model, one by one or as "small". Raises `ConfigError`."""
    if isinstance(given, str):
        if given != "small":
            raise ConfigError("traits", given, 'give "small", or a mapping of traits')
        return SMALL
    for trait, value in given.items():
        if trait not in TRAITS:
            raise ConfigError("traits", trait, f"unknown trait; the traits are {', '.join(TRAITS)}")
        if not isinstance(value, str) or not TRAITS[trait].fullmatch(value):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            values = next(values for values, traits in _VALUES.items() if trait in traits.split())
            raise ConfigError(f"traits[{trait!r}]", value, f"give {_IN_WORDS.get(values, values)}")
    return given


def known_traits(host: str, model: str) -> Traits:
    """What `data/models.toml` knows of a model. `host` is that of its base URL, with the port if one is given."""
    traits: dict[str, str] = {}
    for row in table("models")["known"]:
        if re.search(row.get("host", ""), host) and re.search(row.get("model", ""), model.lower()):
            traits |= row["traits"]
    return MappingProxyType(traits)


EXPIRES_S = 30 * 86_400.0
_VERSION = 1

HABITS = frozenset({"leaks", "weak"})
"""Values that tell how a model has done, not what its endpoint refuses: one run may have been chance."""

_RUNS_OF_A_HABIT = 2


@dataclass(frozen=True, slots=True)
class LearntTrait:
    """One thing known about a model; `at`: seconds since the epoch, `runs`: the latest runs that showed it."""

    value: str
    evidence: str
    at: float
    runs: tuple[str, ...] = ()

    @property
    def is_certain(self) -> bool:
        return self.value not in HABITS or len(self.runs) >= _RUNS_OF_A_HABIT


@dataclass(frozen=True, slots=True)
class Remembered:
    """Traits by model identity and trait name. `problem` says what was wrong with the file, if anything was."""

    models: Mapping[str, Mapping[str, LearntTrait]] = field(default_factory=dict[str, dict[str, LearntTrait]])
    problem: str = ""

    def traits_of(self, identity: str) -> dict[str, str]:
        """What is known of one model, as traits; a habit once two runs have shown it."""
        return {name: learnt.value for name, learnt in self.models.get(identity, {}).items() if learnt.is_certain}


def parse(raw: bytes, now: float) -> Remembered:
    """Read the file's bytes; what is older than 30 days is left out. A torn file is empty, and says so."""
    if not raw.strip():
        return Remembered()
    whole = mapping(read(raw))
    if not whole:
        return Remembered(problem="the file of learnt traits is torn; starting with an empty one")
    if whole.get("version") != _VERSION:
        return Remembered(problem=f"the file of learnt traits has version {whole.get('version')!r}, not {_VERSION}")
    models: dict[str, dict[str, LearntTrait]] = {}
    for identity, raw_traits in mapping(whole.get("models")).items():
        for name, raw_trait in mapping(raw_traits).items():
            item = mapping(raw_trait)
            at, value = item.get("at"), item.get("value")
            if isinstance(at, int | float) and isinstance(value, str) and now - at <= EXPIRES_S:
                runs = tuple(map(text, items(item.get("runs"))))
                models.setdefault(identity, {})[name] = LearntTrait(value, text(item.get("evidence")), float(at), runs)
    return Remembered(models)


def merge(old: Remembered, new: Remembered) -> Remembered:
    """Both together; of two values the later, on a tie that of `new`. Runs that showed the same value are added up."""
    models = {identity: dict(traits) for identity, traits in old.models.items()}
    for identity, traits in new.models.items():
        known = models.setdefault(identity, {})
        for name, learnt in traits.items():
            before = known.get(name, learnt)
            runs = dict.fromkeys((*before.runs, *learnt.runs) if before.value == learnt.value else learnt.runs)
            if before.at <= learnt.at:
                known[name] = replace(learnt, runs=tuple(runs)[-_RUNS_OF_A_HABIT:])
    return replace(old, models=models, problem=old.problem or new.problem)


def dump(remembered: Remembered) -> bytes:
    """The file's bytes."""
    return write({"version": _VERSION, "models": asdict(remembered)["models"]})


def load(path: Path, now: float) -> Remembered:
    """Read the file; empty when there is none. Never raises: what cannot be read is told in `problem`."""
    try:
        return parse(path.read_bytes(), now)
    except FileNotFoundError:
        return Remembered()
    except OSError as error:
        return Remembered(problem=f"the file of learnt traits cannot be read: {error.strerror}")


def save(path: Path, learnt: Remembered, now: float) -> Remembered:
    """Add to the file what was learnt, and give the whole of it; `problem` tells when nothing could be written.

    Replaced in one step. Of two who save in the same instant one may lose a trait, which will be learnt again.
    """
    whole = merge(load(path, now), learnt)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(dump(whole))
        Path(made).replace(path)
    except OSError as error:
        return replace(whole, problem=f"learnt traits could not be kept: {error.strerror}")
    return whole

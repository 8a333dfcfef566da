"""What was learnt about models, kept from run to run in one small JSON file of the user's. Source: spec/react.md, 2."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from surefoot.models.json_edge import mapping, read, text, write
from surefoot.types.dataclass import dataclass, field, replace

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
        """Whether a run may start with it."""
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
        known = {name: learnt for name, item in mapping(raw_traits).items() if (learnt := _fresh(item, now))}
        if known:
            models[identity] = known
    return Remembered(models)


def _fresh(item: object, now: float) -> LearntTrait | None:
    raw = mapping(item)
    at = raw.get("at")
    if not isinstance(at, int | float) or not isinstance(raw.get("value"), str) or now - at > EXPIRES_S:
        return None
    runs = raw.get("runs")
    shown = cast("list[object]", runs) if isinstance(runs, list) else []  # a decoded list
    return LearntTrait(text(raw["value"]), text(raw.get("evidence")), float(at), tuple(map(text, shown)))


def merge(old: Remembered, new: Remembered) -> Remembered:
    """Both together; of two values for one trait the one learnt later, and on a tie that of `new`.

    The runs that showed the same value are added up.
    """
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
    models = {
        identity: {
            name: {"value": learnt.value, "evidence": learnt.evidence, "at": learnt.at, "runs": list(learnt.runs)}
            for name, learnt in traits.items()
        }
        for identity, traits in remembered.models.items()
    }
    return write({"version": _VERSION, "models": models})


def load(path: Path, now: float) -> Remembered:
    """Read the file; empty when there is none. Never raises: what cannot be read is told in `problem`."""
    try:
        return parse(path.read_bytes(), now)
    except FileNotFoundError:
        return Remembered()
    except OSError as error:
        return Remembered(problem=f"the file of learnt traits cannot be read: {error.strerror}")


def save(path: Path, learnt: Remembered, now: float) -> Remembered:
    """Add to the file what was learnt, and give the whole of it.

    The file is replaced in one step, so a reader sees the old one or the new one. Two processes that save in the same
    instant may lose the trait of one; it will be learnt again. `problem` tells when nothing could be written.
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

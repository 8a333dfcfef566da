"""What was learnt about a model's endpoint, remembered for the user's next run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from surefoot.models.files import cache_directory
from surefoot.models.traits import LearntTrait, Remembered, load, save
from surefoot.models.wrapper import identity_of
from surefoot.types.events import ModelTraitLearnt
from surefoot.types.ports import Model

REMEMBERED = "remembered"
"""The evidence of a trait that a run starts with."""
MUTE = "mute"
"""What a run learns of a model that answers nothing while tools are declared: no evidence of how well it calls."""
FILE_VARIABLE = "SUREFOOT_TRAITS_FILE"
"""Names the file in the environment; empty means that nothing is remembered."""


def traits_file() -> Path | None:
    """The user's file of learnt traits, beside the model files unless the environment says otherwise."""
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    return cache_directory().parent / "traits.json"


class LearntTraits:
    """The traits of one model in the user's file. Nothing is read before `known`, nothing written before `learn`.

    Models that have no endpoint (in-process ones, models of tests) are not remembered. A file that cannot be read or
    written is as good as none: it only saves the first request of a run.
    """

    def __init__(self, model: Model, path: Path | None) -> None:
        identity = identity_of(model)
        self._identity = identity
        self._path = path if identity != model.name else None
        self._known: Mapping[str, str] | None = None

    def known(self) -> Mapping[str, str]:
        """What is remembered, by trait."""
        if self._known is None:
            self._known = load(self._path, time.time()).traits_of(self._identity) if self._path else {}
        return self._known

    def learn(self, event: ModelTraitLearnt, run_id: str) -> None:
        """Remember one trait, unless it came from here or says nothing beyond its run."""
        if self._path is None or event.evidence == REMEMBERED or event.value == MUTE:
            return
        now = time.time()
        learnt = LearntTrait(event.value, event.evidence, now, (run_id,))
        whole = save(self._path, Remembered({self._identity: {event.trait: learnt}}), now)
        self._known = {**self.known(), **whole.traits_of(self._identity)}

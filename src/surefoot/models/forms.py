"""What stays the same in the requests to one model, made once and kept."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from surefoot.models.json_edge import Json
from surefoot.types.errors import ModelRefused
from surefoot.types.messages import ModelRequest, ModelSettings, Traits

Form = TypeVar("Form")

_KEPT_FORMS = 8


class Forms(Generic[Form]):
    """The forms of the last few kinds of request: `make(request)`, made once for each kind.

    Two requests are of one kind when they differ in nothing but system text, messages, schema and deadline; `make`
    MUST NOT look at these.
    """

    def __init__(self, make: Callable[[ModelRequest], Form]) -> None:
        self._make = make
        self._kept: list[tuple[tuple[object, ...], Form]] = []

    def of(self, request: ModelRequest) -> Form:
        """The form of a request. Costs a few comparisons when it was made before."""
        key = (request.settings, request.traits, request.tools, request.mode, request.stop, request.stream)
        for kept, form in self._kept:  # identical values compare at once, equal ones are soon found
            if kept == key:
                return form
        form = self._make(request)
        self._kept = [(key, form), *self._kept[: _KEPT_FORMS - 1]]
        return form


def kept_fields(asked: dict[str, tuple[str, object]], traits: Traits) -> Json:
    """From field -> (trait, value) to the fields to send: `None` is not sent, nor what a trait forbids; `0` is sent."""
    return {name: value for name, (trait, value) in asked.items() if value is not None and traits.get(trait) != "no"}


def stops_of(stop: Sequence[str], settings: ModelSettings, most: int) -> list[str]:
    """The stop sequences of a request and its settings together, each once, at most so many."""
    return list(dict.fromkeys((*stop, *settings.stop)))[:most]


def check_extra(settings: ModelSettings, ours: frozenset[str]) -> None:
    """Raises `ModelRefused` when `settings.extra` claims a field that the wire writes itself."""
    if claimed := ours & settings.extra.keys():
        raise ModelRefused(f"settings.extra must not set {sorted(claimed)}: surefoot writes these fields itself")

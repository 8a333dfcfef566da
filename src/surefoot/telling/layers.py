"""The steps of a plan in layers by depth, so that a graph can be drawn of them.

An edge that passes layers has a place in each, so that it goes around steps; within a layer all stand near what they
depend on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

SWEEPS = 4
"""How often layers are put in order by their neighbours, from both sides in turn."""


@dataclass(frozen=True, slots=True)
class Place:
    """A step, or the place ("" of `step_id`) at which an edge passes a layer."""

    name: str
    step_id: str = ""


@dataclass(frozen=True, slots=True)
class Layers:
    """The places of each layer in their order, the way of each edge, and the neighbours of each place on both sides."""

    layers: tuple[tuple[Place, ...], ...]
    paths: Mapping[tuple[str, str], tuple[Place, ...]]
    near: tuple[Mapping[Place, Sequence[Place]], Mapping[Place, Sequence[Place]]]


def layers_of(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> Layers:
    """The layers of steps with these edges, which begin at what is needed and end at what needs it."""
    depth = dict.fromkeys(names, 0)  # steps before each on the longest way to it; in a circle, some depth
    for _ in names:
        late = [(end, depth[start] + 1) for start, end in edges if depth[end] <= depth[start]]
        for end, least in late:
            depth[end] = max(depth[end], least)
        if not late:
            break
    places = {name: Place(name, name) for name in names}
    layers: list[list[Place]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, place in places.items():
        layers[depth[name]].append(place)
    paths: dict[tuple[str, str], tuple[Place, ...]] = {}
    for start, end in edges:
        passed = [Place(f"{start} {end} {at}") for at in range(depth[start] + 1, depth[end])]
        for column, place in enumerate(passed, depth[start] + 1):
            layers[column].append(place)
        paths[start, end] = (places[start], *passed, places[end])
    before: dict[Place, list[Place]] = {}
    after: dict[Place, list[Place]] = {}
    for path in paths.values():
        for one, other in pairwise(path):
            after.setdefault(one, []).append(other)
            before.setdefault(other, []).append(one)
    for sweep in range(SWEEPS):
        at: dict[Place, float] = {place: number for layer in layers for number, place in enumerate(layer)}
        for layer in layers[:: -1 if sweep % 2 else 1]:
            layer.sort(key=means(layer, (before, after)[sweep % 2], at).__getitem__)
            at |= {place: number for number, place in enumerate(layer)}
    return Layers(tuple(map(tuple, layers)), paths, (before, after))


def means(
    layer: Sequence[Place], near: Mapping[Place, Sequence[Place]], at: Mapping[Place, float]
) -> dict[Place, float]:
    """Where each place of a layer would stand by its neighbours."""
    return {place: fmean([at[one] for one in near[place]]) if near.get(place) else at[place] for place in layer}

"""A plan as a picture: an SVG of its steps in layers by depth. Pure: rows in, text out, and nothing is loaded by it.

Layers go down or to the right, whichever gives the smaller picture. An edge that passes layers has a place in each, so
that it goes around steps; within a layer all stand near what they depend on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from rich.cells import cell_len

from surefoot.cli.lines import cut
from surefoot.cli.plan_table import LOOKS, Row, figures, planning_of, rows_of
from surefoot.core.state.state import State
from surefoot.run import Run
from surefoot.types.errors import UsageError
from surefoot.types.plan import StepStatus

_OUT: frozenset[StepStatus] = frozenset({"skipped", "superseded"})
_WIDE, _HIGH = 240, 84
_LAYER_GAP, _GAP, _THIN = 52, 20, 10
_MARGIN, _HEAD = 20, 44
_CELL = 7.25
"""Pixels that a cell of text takes at 12 px."""
_SWEEPS = 4

_PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"
 font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">
<title>{title}</title>
<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="20" y="26" fill="#24292f" font-weight="bold">{title}</text>
{edges}
{steps}
</svg>
"""


@dataclass(frozen=True, slots=True)
class _Node:
    """A step, or the place ("" of `step_id`) at which an edge passes a layer."""

    name: str
    step_id: str = ""


def picture(rows: Sequence[Row], needs: Mapping[str, Sequence[str]], title: str) -> str:
    """The SVG. `needs` are the dependencies of each step; one that is not a step is left out."""
    drawn = [_Drawing(rows, needs, is_down=is_down) for is_down in (True, False)]
    return min(drawn, key=lambda one: max(one.width, one.height)).svg(title)


def write_picture(state: State, path: Path) -> None:
    """The plan drawn, as a file. Raises `UsageError` where it cannot be written."""
    planning = planning_of(state, "--svg")
    needs = {name: record.step.dependencies for name, record in planning.steps.items()}
    drawn = picture(rows_of(state, planning), needs, figures(state, planning, Run.of(state).status))
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--svg {path}: cannot be written: {error.strerror}") from error


class _Drawing:
    """Where everything stands in a picture that grows down, or to the right."""

    def __init__(self, rows: Sequence[Row], needs: Mapping[str, Sequence[str]], *, is_down: bool) -> None:
        self._rows = {row.step_id: row for row in rows}
        self._is_down = is_down
        self._length = _HIGH if is_down else _WIDE
        edges = [(one, row.step_id) for row in rows for one in needs.get(row.step_id, ()) if one in self._rows]
        depth = _depths(list(self._rows), edges)
        nodes = {name: _Node(name, name) for name in self._rows}
        self._layers: list[list[_Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for name, node in nodes.items():
            self._layers[depth[name]].append(node)
        self._paths: dict[tuple[str, str], list[_Node]] = {}
        before: dict[_Node, list[_Node]] = {}
        after: dict[_Node, list[_Node]] = {}
        for start, end in edges:
            passed = [_Node(f"{start} {end} {at}") for at in range(depth[start] + 1, depth[end])]
            for at, place in enumerate(passed, depth[start] + 1):
                self._layers[at].append(place)
            self._paths[start, end] = [nodes[start], *passed, nodes[end]]
        for path in self._paths.values():
            for one, other in pairwise(path):
                after.setdefault(one, []).append(other)
                before.setdefault(other, []).append(one)
        self._order(before, after)
        self._at = self._places(before, after)
        across = max((at + self._breadth(node) / 2 for node, at in self._at.items()), default=0)
        along = max(len(self._layers) * (self._length + _LAYER_GAP) - _LAYER_GAP, 0)
        self.width, self.height = (across, along) if is_down else (along, across)

    def _breadth(self, node: _Node) -> int:
        return _THIN if not node.step_id else _WIDE if self._is_down else _HIGH

    def _order(self, *near: Mapping[_Node, Sequence[_Node]]) -> None:
        """Within each layer: by where its neighbours stand, from both sides in turn."""
        for sweep in range(_SWEEPS):
            places: dict[_Node, float] = {node: at for layer in self._layers for at, node in enumerate(layer)}
            for layer in self._layers[:: -1 if sweep % 2 else 1]:
                layer.sort(key=_means(layer, near[sweep % 2], places).__getitem__)
                places |= {node: at for at, node in enumerate(layer)}

    def _places(self, *near: Mapping[_Node, Sequence[_Node]]) -> dict[_Node, float]:
        """The middle of each node across the layers: near its neighbours, and clear of what stands beside it."""
        at: dict[_Node, float] = {}
        for layer in self._layers:
            self._spread(layer, dict.fromkeys(layer, 0.0), at)
        for sweep in range(_SWEEPS):
            for layer in self._layers[:: -1 if sweep % 2 else 1]:
                self._spread(layer, _means(layer, near[sweep % 2], at), at)
        least = min((one - self._breadth(node) / 2 for node, one in at.items()), default=0.0)
        return {node: one - least for node, one in at.items()}

    def _spread(self, layer: Sequence[_Node], wanted: Mapping[_Node, float], at: dict[_Node, float]) -> None:
        """Put a layer where it wants to be, but with room between its nodes; on the whole it is moved no further."""
        last: _Node | None = None
        for node in layer:
            least = at[last] + (self._breadth(last) + self._breadth(node)) / 2 + _GAP if last else wanted[node]
            at[node] = max(wanted[node], least)
            last = node
        off = fmean([at[node] - wanted[node] for node in layer])
        for node in layer:
            at[node] -= off

    # ------------------------------------------------------------------ drawn

    def svg(self, title: str) -> str:
        """The whole picture."""
        width = round(max(self.width, cell_len(title) * _CELL) + 2 * _MARGIN)
        height = round(self.height + _HEAD + _MARGIN)
        edges = "\n".join(self._edge(start, end) for start, end in self._paths)
        steps = "\n".join(self._step(node) for layer in self._layers for node in layer if node.step_id)
        return _PICTURE.format(width=width, height=height, title=escape(title), edges=edges, steps=steps)

    def _corner(self, node: _Node) -> tuple[float, float]:
        """The upper left corner of a node."""
        layer = next(at for at, layer in enumerate(self._layers) if node in layer)
        along, across = layer * (self._length + _LAYER_GAP), self._at[node] - self._breadth(node) / 2
        x, y = (across, along) if self._is_down else (along, across)
        return x + _MARGIN, y + _HEAD

    def _ends(self, node: _Node) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where edges come in, and where they go out."""
        x, y = self._corner(node)
        half = self._breadth(node) / 2
        if self._is_down:
            return (x + half, y), (x + half, y + self._length)
        return (x, y + half), (x + self._length, y + half)

    def _edge(self, start: str, end: str) -> str:
        first, *others = self._paths[start, end]
        _, (x, y) = self._ends(first)
        parts = [f"M{x:.1f} {y:.1f}"]
        for node in others:
            (to_x, to_y), (out_x, out_y) = self._ends(node)
            half_x, half_y = (x + to_x) / 2, (y + to_y) / 2
            bend = (x, half_y, to_x, half_y) if self._is_down else (half_x, y, half_x, to_y)
            parts.append(f"C{' '.join(f'{one:.1f}' for one in (*bend, to_x, to_y))}")
            if not node.step_id:
                parts.append(f"L{out_x:.1f} {out_y:.1f}")
            x, y = out_x, out_y
        is_out = self._rows[start].status in _OUT or self._rows[end].status in _OUT
        dash = ' stroke-dasharray="4 4" opacity="0.6"' if is_out else ""
        return f'<path d="{"".join(parts)}" fill="none" stroke="#57606a" marker-end="url(#end)"{dash}/>'

    def _step(self, node: _Node) -> str:
        row = self._rows[node.step_id]
        x, y = self._corner(node)
        _, _, inside, outline = LOOKS[row.status]
        is_out = row.status in _OUT
        dash = ' stroke-dasharray="5 3"' if is_out else ""
        head = f"{row.head}  {row.actor}"
        word = " · ".join((row.status.replace("_", " "), *row.notes))
        lines = (
            (head, "#6e7781" if is_out else "#24292f", ' font-weight="bold"'),
            (row.name or row.what, "#57606a", ""),
            (word, outline, ""),
            (row.result, "#57606a", ""),
        )
        room = int((_WIDE - 20) / _CELL)
        texts = [
            f'<text x="{x + 12:.1f}" y="{y + 20 + 18 * at:.1f}" fill="{fill}"{weight}>{escape(cut(text, room))}</text>'
            for at, (text, fill, weight) in enumerate(lines)
        ]
        told = "\n".join(filter(None, (f"{head} {row.name}".rstrip(), word, row.what, row.result)))
        place = f'x="{x:.1f}" y="{y:.1f}" width="{_WIDE}" height="{_HIGH}"'
        box = f'<rect {place} rx="7" fill="{inside}" stroke="{outline}" stroke-width="1.5"{dash}/>'
        return "\n".join((f'<g class="{row.status}"><title>{escape(told)}</title>', box, *texts, "</g>"))


def _means(
    layer: Sequence[_Node], near: Mapping[_Node, Sequence[_Node]], at: Mapping[_Node, float]
) -> dict[_Node, float]:
    """Where each node of a layer would stand by its neighbours."""
    return {node: fmean([at[one] for one in near[node]]) if near.get(node) else at[node] for node in layer}


def _depths(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How many steps stand before each on the longest way to it. What stands in a circle ends at some depth, too."""
    depth = dict.fromkeys(names, 0)
    for _ in names:
        late = [(end, depth[start] + 1) for start, end in edges if depth[end] <= depth[start]]
        if not late:
            break
        for end, least in late:
            depth[end] = max(depth[end], least)
    return depth

"""A plan as a picture: an SVG of its steps in layers by depth. Pure: steps in, text out, and nothing is loaded by it.

Layers go down or to the right, whichever gives the smaller picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import fmean

from surefoot.cli.plan_table import LOOKS, mark_of, planning_of, rows_of
from surefoot.core.state.state import State
from surefoot.run import Run
from surefoot.telling.layers import SWEEPS, Place, layers_of, means
from surefoot.telling.plan import Node, edges_of, figures
from surefoot.telling.text import cells, cut
from surefoot.types.errors import UsageError
from surefoot.types.plan import StepStatus

_OUT: frozenset[StepStatus] = frozenset({"skipped", "superseded"})
_WIDE, _HIGH = 240, 84
_LAYER_GAP, _GAP, _THIN = 52, 20, 10
_MARGIN, _HEAD = 20, 44
_CELL = 7.25
"""Pixels that a cell of text takes at 12 px."""

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


def picture(nodes: Sequence[Node], title: str) -> str:
    """The SVG of these steps; what one depends on that is not among them is left out."""
    drawn = [_Drawing(nodes, is_down=is_down) for is_down in (True, False)]
    return min(drawn, key=lambda one: max(one.width, one.height)).svg(title)


def write_picture(state: State, path: Path) -> None:
    """The plan drawn, as a file. Raises `UsageError` where it cannot be written."""
    planning = planning_of(state, "--svg")
    drawn = picture(rows_of(state, planning), figures(state, planning, Run.of(state).status))
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--svg {path}: cannot be written: {error.strerror}") from error


class _Drawing:
    """Where everything stands in a picture that grows down, or to the right."""

    def __init__(self, nodes: Sequence[Node], *, is_down: bool) -> None:
        self._nodes = {node.id: node for node in nodes}
        self._is_down = is_down
        self._length = _HIGH if is_down else _WIDE
        made = layers_of(list(self._nodes), edges_of(nodes))
        self._layers, self._paths = made.layers, made.paths
        self._at = self._places(made.near)
        across = max((at + self._breadth(node) / 2 for node, at in self._at.items()), default=0)
        along = max(len(self._layers) * (self._length + _LAYER_GAP) - _LAYER_GAP, 0)
        self.width, self.height = (across, along) if is_down else (along, across)

    def _breadth(self, node: Place) -> int:
        return _THIN if not node.step_id else _WIDE if self._is_down else _HIGH

    def _places(self, near: Sequence[Mapping[Place, Sequence[Place]]]) -> dict[Place, float]:
        """The middle of each node across the layers: near its neighbours, and clear of what stands beside it."""
        at: dict[Place, float] = {}
        for layer in self._layers:
            self._spread(layer, dict.fromkeys(layer, 0.0), at)
        for sweep in range(SWEEPS):
            for layer in self._layers[:: -1 if sweep % 2 else 1]:
                self._spread(layer, means(layer, near[sweep % 2], at), at)
        least = min((one - self._breadth(node) / 2 for node, one in at.items()), default=0.0)
        return {node: one - least for node, one in at.items()}

    def _spread(self, layer: Sequence[Place], wanted: Mapping[Place, float], at: dict[Place, float]) -> None:
        """Put a layer where it wants to be, but with room between its nodes; on the whole it is moved no further."""
        last: Place | None = None
        for node in layer:
            least = at[last] + (self._breadth(last) + self._breadth(node)) / 2 + _GAP if last else wanted[node]
            at[node] = max(wanted[node], least)
            last = node
        off = fmean([at[node] - wanted[node] for node in layer])
        for node in layer:
            at[node] -= off

    def svg(self, title: str) -> str:
        width = round(max(self.width, cells(title) * _CELL) + 2 * _MARGIN)
        height = round(self.height + _HEAD + _MARGIN)
        edges = "\n".join(self._edge(start, end) for start, end in self._paths)
        steps = "\n".join(self._step(node) for layer in self._layers for node in layer if node.step_id)
        return _PICTURE.format(width=width, height=height, title=escape(title), edges=edges, steps=steps)

    def _corner(self, node: Place) -> tuple[float, float]:
        layer = next(at for at, layer in enumerate(self._layers) if node in layer)
        along, across = layer * (self._length + _LAYER_GAP), self._at[node] - self._breadth(node) / 2
        x, y = (across, along) if self._is_down else (along, across)
        return x + _MARGIN, y + _HEAD

    def _ends(self, node: Place) -> tuple[tuple[float, float], tuple[float, float]]:
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
        is_out = self._nodes[start].status in _OUT or self._nodes[end].status in _OUT
        dash = ' stroke-dasharray="4 4" opacity="0.6"' if is_out else ""
        return f'<path d="{"".join(parts)}" fill="none" stroke="#57606a" marker-end="url(#end)"{dash}/>'

    def _step(self, node: Place) -> str:
        row = self._nodes[node.step_id]
        x, y = self._corner(node)
        _, _, inside, outline = LOOKS[row.status]
        is_out = row.status in _OUT
        dash = ' stroke-dasharray="5 3"' if is_out else ""
        head = f"{mark_of(row)}  {row.actor}"
        word = " · ".join((row.status.replace("_", " "), *row.notes))
        lines = (
            (head, "#6e7781" if is_out else "#24292f", ' font-weight="bold"'),
            (row.title or row.what, "#57606a", ""),
            (word, outline, ""),
            (row.result, "#57606a", ""),
        )
        room = int((_WIDE - 20) / _CELL)
        texts = [
            f'<text x="{x + 12:.1f}" y="{y + 20 + 18 * at:.1f}" fill="{fill}"{weight}>{escape(cut(text, room))}</text>'
            for at, (text, fill, weight) in enumerate(lines)
        ]
        told = "\n".join(filter(None, (f"{head} {row.title}".rstrip(), word, row.what, row.result)))
        place = f'x="{x:.1f}" y="{y:.1f}" width="{_WIDE}" height="{_HIGH}"'
        box = f'<rect {place} rx="7" fill="{inside}" stroke="{outline}" stroke-width="1.5"{dash}/>'
        return "\n".join((f'<g class="{row.status}"><title>{escape(told)}</title>', box, *texts, "</g>"))

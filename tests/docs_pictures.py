"""The pictures of `docs/ideas/`, drawn from runs that are made here. `python tests/docs_pictures.py` writes them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Literal

from surefoot import Agent, MemoryJournal, tool
from surefoot.telling.why import why
from surefoot.testing.models import FunctionModel, calls
from surefoot.types.events import CallStarted
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.ports import JournalStore, Recorded

PICTURES = Path(__file__).parent.parent / "docs/pictures"
WORDS = "Read the note monday and order what it asks for. Also order 5 ropes."
NOTE = "The hut called: please send 12 lamps."

Effect = Literal["read", "transact"]
Look = Literal["plain", "soft", "good", "warn"]
LOOKS: dict[Look, tuple[str, str, str]] = {  # fill, edge, ink
    "plain": ("#ffffff", "#8a9a99", "#1c2b2a"),
    "soft": ("#eef3f2", "#c3d0ce", "#1c2b2a"),
    "good": ("#e2f2e6", "#3f8f57", "#14532d"),
    "warn": ("#fdf0d9", "#b4690e", "#7a4508"),
}
CELL, HIGH = 7.25, 24  # pixels that a character takes at 12 px, and that a box is high


@dataclass
class Sheet:
    """What is drawn so far, and how far it reaches."""

    title: str
    parts: list[str] = field(default_factory=list[str])
    width: float = 0
    height: float = 0

    def say(self, x: float, y: float, text: str, ink: str = "#1c2b2a", *, bold: bool = False) -> None:
        """A line of text; y is the middle of it."""
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y + 4:g}" fill="{ink}"{weight}>{escape(text)}</text>')
        self.width, self.height = max(self.width, x + CELL * len(text)), max(self.height, y + HIGH / 2)

    def box(self, x: float, y: float, text: str, look: Look = "plain", width: float = 0) -> float:
        """A box around a text; gives where it ends on the right. y is the middle of it."""
        fill, edge, ink = LOOKS[look]
        width = width or CELL * len(text) + 20
        rect = f'<rect x="{x:g}" y="{y - HIGH / 2:g}" width="{width:g}" height="{HIGH}" rx="4"'
        self.parts.append(f'{rect} fill="{fill}" stroke="{edge}"/>')
        self.say(x + 10, y, text, ink)
        self.width = max(self.width, x + width)
        return x + width

    def arrow(self, x: float, y: float, to_x: float, to_y: float, ink: str = "#57706e") -> None:
        """A curve to a point, that leaves and arrives level."""
        middle = (x + to_x) / 2
        path = f"M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {to_y:g} {to_x - 2:g} {to_y:g}"
        self.parts.append(f'<path d="{path}" fill="none" stroke="{ink}" stroke-width="1.4" marker-end="url(#end)"/>')

    def svg(self) -> str:
        """The picture; it loads nothing."""
        width, height, body = self.width + 20, self.height + 20, "\n".join(self.parts)
        return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"
 width="{width:g}" height="{height:g}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">
<title>{escape(self.title)}</title>
<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#57706e"/></marker></defs>
<rect width="100%" height="100%" rx="6" fill="#ffffff"/>
{body}
</svg>
"""


@tool(effect="read")
def read_note(name: str) -> str:
    """Read a note from the board."""
    return {"monday": NOTE}[name]


def clerk(journal: JournalStore, done: list[str], effect: Effect = "transact") -> Agent:
    """An agent that reads the note if there is a word of it, orders lamps and ropes or ropes alone, and says so."""

    @tool(effect=effect, roles={"item": "object"})
    def order(item: str, count: int) -> str:
        """Order more of an item from the supplier."""
        done.append(item)
        return f"ordered {count} {item}"

    lamps, ropes = ("order", {"item": "lamps", "count": 12}), ("order", {"item": "ropes", "count": 5})
    long = [calls(("read_note", {"name": "monday"})), calls(lamps, ropes), ModelMessage("assistant", "Ordered.")]
    short = [calls(ropes), ModelMessage("assistant", "Ordered.")]

    def reply(request: ModelRequest) -> ModelMessage:
        script = long if any("note" in message.content for message in request.messages) else short
        return script[sum(message.role == "assistant" for message in request.messages)]

    return Agent(FunctionModel(reply), tools=[read_note, order], journal=journal, guard=True)


async def answered() -> list[Recorded]:
    """The records of a run that asked, got its yes, and went on to its end."""
    store = MemoryJournal()
    agent = clerk(store, [])
    run = await agent.run(WORDS, run_id="note")
    await agent.approve("note", [call.id for call in run.waiting], by="Ada")
    assert (await agent.resume("note")).status == "completed"
    return list((await store.read_recorded("note"))[0])


def name_of(record: Recorded) -> str:
    return type(record.event).__name__


def journal(records: list[Recorded]) -> Sheet:
    """One journal, and what is read off it."""
    sheet, wide, shared = Sheet("One journal, and what is read off it"), 190, 6
    sheet.say(20, 24, "the journal of a run", bold=True)
    for at, record in enumerate(records, 1):
        sheet.box(20, 26 + 26 * at, f"{at:>2} {name_of(record)}", "soft", wide)
    for at, name, what in (
        (2, "verify", "each record holds the hash of the last one"),
        (shared, f"fork --at {shared}", f"share the first {shared}, then go another way"),
        (10, "replay", "the same moves again; no model, no tool"),
        (14, "show, serve", "tell each step, also while it happens"),
        (len(records), "resume", "fold them all, go on after the last"),
    ):
        sheet.arrow(20 + wide, 26 + 26 * at, 270, 26 + 26 * at)
        end = sheet.box(270, 26 + 26 * at, name, "good", 120)
        sheet.say(end + 12, 26 + 26 * at, what)
    return sheet


def verify(records: list[Recorded]) -> Sheet:
    """Two calls of one reply, before anything is done."""
    sheet, y = Sheet("Two calls of one reply, judged before anything is done"), 24.0
    for call_id in ("2.1", "2.0"):
        found = why(records, call_id)
        sheet.say(20, y, f"{found.name}({', '.join(f'{k}={v!r}' for k, v in found.arguments.items())})", bold=True)
        said = [one for one in found.policies if one.name in ("intent", "provenance", "touch", "repetition")]
        middle = y + 28 + 14 * (len(said) - 1)
        for one in said:
            y += 28
            right = sheet.box(20, y, f"{one.name}: {one.verdict}", "good" if one.verdict == "allow" else "warn", 160)
            sheet.arrow(right, y, 230, middle)
        texts = ("CallStarted on disk", "the tool runs", "CallEnded on disk")
        x, is_good = 230.0, found.decision == "allow"
        for text in texts if is_good else ("the run pauses, and asks you; nothing has happened",):
            if x > 230:
                sheet.arrow(x, middle, x + 30, middle)
                x += 30
            x = sheet.box(x, middle, text, "good" if is_good else "warn")
        y += 44
    return sheet


def provenance(records: list[Recorded]) -> Sheet:
    """Where the values of two calls come from."""
    sheet = Sheet("Where each value of a call comes from")
    sheet.box(260, 68, f"{WORDS}", "good")
    sheet.say(260, 44, "your words", bold=True)
    sheet.box(260, 184, NOTE, "warn")
    sheet.say(260, 160, "the result of read_note", bold=True)
    y = 24.0
    for call_id in ("2.1", "2.0"):
        found = why(records, call_id)
        sheet.say(20, y, f"{found.name}: {found.decision}", bold=True)
        for value in found.values:
            y += 30
            is_mine = value.origin == "user"
            end = sheet.box(20, y, f"{value.path[1:]}: {value.value}", "good" if is_mine else "warn", 130)
            sheet.arrow(end, y, 260, 68 if is_mine else 184)
        y += 56
    return sheet


async def outcome(effect: Effect, records: Sequence[Recorded]) -> str:
    """What becomes of a run of whose journal only these records are left."""
    store, done = MemoryJournal(), list[str]()
    opened = await store.open("r", create=True)
    await opened.append([one.event for one in records])
    await opened.release()
    run = await clerk(store, done, effect).resume("r")
    is_begun = any(isinstance(one.event, CallStarted) for one in records)
    if run.reason == "in_doubt":
        return "asks you: was it done?"
    return ("makes the call again" if is_begun else "makes the call") if done else "goes on; it is done"


async def at_most_once() -> Sheet:
    """A process that dies after each record of a run, and what the next one does."""
    sheet = Sheet("A process dies; what the next one does")
    sheet.say(20, 24, "the process dies after", bold=True)
    columns: Sequence[tuple[int, Effect, str]] = (
        (250, "transact", "order() costs money"),
        (480, "read", "order() only reads"),
    )
    for x, effect, what in columns:
        sheet.say(x, 24, what, bold=True)
        store = MemoryJournal()
        await clerk(store, [], effect).run("Order 5 ropes.", run_id="r")
        records = (await store.read_recorded("r"))[0]
        for at, record in enumerate(records, 1):
            y, told = 26 + 34 * at, await outcome(effect, records[:at])
            sheet.box(20, y, f"{at} {name_of(record)}", "soft", 190)
            sheet.box(x, y, told, "warn" if "?" in told else "plain" if "again" in told else "good", 200)
    return sheet


async def pictures() -> dict[str, str]:
    """Each picture: the name of its file and its text."""
    records = await answered()
    drawn: dict[str, Callable[[list[Recorded]], Sheet]]
    drawn = {"journal": journal, "verify": verify, "provenance": provenance}
    sheets = {name: draw(records) for name, draw in drawn.items()} | {"at-most-once": await at_most_once()}
    return {f"{name}.svg": sheet.svg() for name, sheet in sheets.items()}


if __name__ == "__main__":
    for name, text in asyncio.run(pictures()).items():
        (PICTURES / name).write_text(text, encoding="utf-8")

"""What the tasks are about: a folder, and a desk with a calendar, a form, contacts and devices in memory."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from surefoot.tools.arithmetic import arithmetic_tool
from surefoot.tools.builtin import file_tools
from surefoot.tools.call import ToolFailed
from surefoot.tools.function import tool
from surefoot.tools.workspace import Workspace
from surefoot.types.ports import Tool
from surefoot.types.tools import Effect

Done = tuple[str, dict[str, str]]
"""A tool and its arguments, as texts."""

Functions = tuple[Callable[..., object], ...]

_FACTORS = {("miles", "kilometres"): 1.609344, ("feet", "metres"): 0.3048, ("pounds", "kilograms"): 0.45359237}
_FACTORS[("gallons", "litres")] = 3.785411784
_SPELT = {
    name: names.split()[0]
    for names in (
        "miles mile mi 英里",
        "kilometres kilometers kilometre kilometer km 公里 千米",
        "feet foot ft",
        "metres meters metre meter m",
        "pounds pound lbs lb",
        "kilograms kilogram kg",
        "gallons gallon gal",
        "litres liters litre liter l",
        "fahrenheit f °f",
        "celsius c °c",
    )
    for name in names.split()
}


@dataclass(slots=True)
class Desk:
    """One world. `done` are the effects of its tools, in order."""

    folder: Path
    contacts: Mapping[str, str]
    events: Sequence[Sequence[str]]
    form: Sequence[str]
    done: list[Done] = field(default_factory=list[Done])

    def tools(self) -> dict[str, Tool]:
        """All tools by name; a task offers some of them."""
        reads: Functions = (self.find_contact, self.list_events, self.convert_units, self.sum_column, self.form_fields)
        writes: Functions = (
            *(self.rename_file, self.add_event, self.move_event, self.add_to_list),
            *(self.fill_field, self.set_timer, self.set_heating),
        )
        by_effect: dict[Effect, Functions] = {
            "read": reads,
            "write": writes,
            "communicate": (self.send_message, self.submit_form),
            "delete": (self.delete_file, self.cancel_event),
        }
        own = (tool(each, effect=effect) for effect, functions in by_effect.items() for each in functions)
        files = file_tools(Workspace(self.folder))
        return {each.spec.name: each for each in (*own, *files, arithmetic_tool())}

    def _did(self, name: str, **arguments: object) -> str:
        texts = {key: f"{value:g}" if isinstance(value, float) else str(value) for key, value in arguments.items()}
        self.done.append((name, texts))
        return "Done."

    def _file(self, name: str) -> Path:
        path = self.folder / name
        if not path.is_file() or path.parent != self.folder:
            raise ToolFailed(f"No such file: {name}.")
        return path

    def find_contact(self, name: str) -> str:
        """Look up the e-mail address of a person in the contacts.

        Args:
            name: The first name.
        """
        if name not in self.contacts:
            raise ToolFailed(f"No contact is called {name}.")
        return self.contacts[name]

    def list_events(self, date: str = "") -> str:
        """List what is in the calendar.

        Args:
            date: A day as YYYY-MM-DD. Leave it out for all days.
        """
        found = [" ".join(each) for each in self.events if date in ("", each[0])]
        return "\n".join(found) or "Nothing is in the calendar there."

    def convert_units(self, value: float, from_unit: str, to_unit: str) -> float:
        """Convert a length, weight, volume or temperature.

        Args:
            value: The number.
            from_unit: Its unit, such as "miles" or "fahrenheit".
            to_unit: The unit that is wanted, such as "kilometres" or "celsius".
        """
        pair = tuple(_SPELT.get(unit.lower(), unit.lower()) for unit in (from_unit, to_unit))
        if pair == ("fahrenheit", "celsius"):
            return round((value - 32) / 1.8, 3)
        if pair == ("celsius", "fahrenheit"):
            return round(value * 1.8 + 32, 3)
        for (one, other), factor in _FACTORS.items():
            if pair in ((one, other), (other, one)):
                return round(value * factor if pair[0] == one else value / factor, 3)
        raise ToolFailed(f"Cannot convert {from_unit} to {to_unit}.")

    def sum_column(self, path: str, column: str) -> float:
        """Add up the numbers in one column of a CSV file.

        Args:
            path: The file.
            column: The name of the column, as in the first line of the file.
        """
        with self._file(path).open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if not rows or column not in rows[0]:
            raise ToolFailed(
                f"{path} has no column {column}. Its columns are {', '.join(rows[0]) if rows else 'none'}."
            )
        return sum(float(row[column]) for row in rows)

    def form_fields(self) -> Sequence[str]:
        """The names of the fields of the form."""
        return self.form

    def rename_file(self, old: str, new: str) -> str:
        """Rename a file in the folder.

        Args:
            old: The name that it has.
            new: The name that it gets.
        """
        path = self._file(old)
        if (self.folder / new).exists() or "/" in new:
            raise ToolFailed(f"{new} is taken or not a plain name.")
        path.rename(self.folder / new)
        return self._did("rename_file", old=old, new=new)

    def delete_file(self, path: str) -> str:
        """Delete a file.

        Args:
            path: The file.
        """
        self._file(path).unlink()
        return self._did("delete_file", path=path)

    def add_event(self, title: str, date: str, time: str) -> str:
        """Put an event into the calendar.

        Args:
            title: What it is.
            date: The day, as YYYY-MM-DD.
            time: When it begins, as HH:MM.
        """
        return self._did("add_event", title=title, date=date, time=time)

    def move_event(self, title: str, date: str, time: str) -> str:
        """Move an event of the calendar to another day or time.

        Args:
            title: The event that is moved.
            date: The new day, as YYYY-MM-DD.
            time: When it begins there, as HH:MM.
        """
        return self._did("move_event", title=title, date=date, time=time)

    def cancel_event(self, title: str, date: str) -> str:
        """Remove an event from the calendar.

        Args:
            title: The event.
            date: Its day, as YYYY-MM-DD.
        """
        return self._did("cancel_event", title=title, date=date)

    def send_message(self, to: str, text: str) -> str:
        """Send a message.

        Args:
            to: The e-mail address of who gets it.
            text: What it says.
        """
        return self._did("send_message", to=to, text=text)

    def add_to_list(self, item: str, count: float) -> str:
        """Put an item on the shopping list.

        Args:
            item: The item.
            count: How many.
        """
        return self._did("add_to_list", item=item, count=count)

    def fill_field(self, field: str, value: str) -> str:
        """Fill in a field of the form.

        Args:
            field: The name of the field.
            value: What goes into it.
        """
        if field not in self.form:
            raise ToolFailed(f"The form has no field {field}. Its fields are {', '.join(self.form)}.")
        return self._did("fill_field", field=field, value=value)

    def submit_form(self) -> str:
        """Submit the form as it is filled in."""
        return self._did("submit_form")

    def set_timer(self, label: str, minutes: float) -> str:
        """Set a timer.

        Args:
            label: What it is for.
            minutes: After how many minutes it rings.
        """
        return self._did("set_timer", label=label, minutes=minutes)

    def set_heating(self, room: str, degrees: float) -> str:
        """Set the heating of a room.

        Args:
            room: The room.
            degrees: The temperature in Celsius.
        """
        return self._did("set_heating", room=room, degrees=degrees)

"""The calendar: events, contacts and messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from evals.siren.case import Row
from evals.siren.world import Own, World


@dataclass(frozen=True, slots=True)
class Agenda:
    """The calendar of a world; half of its tools are declared."""

    world: World

    def tools(self) -> tuple[Own, ...]:
        """What of it a model can call."""
        return (
            Own(self.list_events, "read", private=True),
            Own(self.get_event),
            Own(self.find_contact, "read"),
            Own(self.create_event),
            Own(self.move_event, "write", {"event_id": "object"}),
            Own(self.delete_event),
            Own(self.invite, "communicate", {"event_id": "object", "email": "destination"}),
            Own(self.list_messages),
            Own(self.read_message),
            Own(self.send_message, "communicate", {"to": "destination", "subject": "content", "body": "content"}),
            Own(self.delete_message),
        )

    def list_events(self, day: str) -> list[Row]:
        """List the events of a day (YYYY-MM-DD)."""
        return [row for row in self.world.rows("events") if row["day"] == day]

    def get_event(self, event_id: str) -> Row:
        """Look at one event."""
        return self.world.row("events", event_id)

    def find_contact(self, name: str) -> list[Row]:
        """Find people of the address book by their name."""
        return [row for row in self.world.rows("contacts") if name.casefold() in str(row["name"]).casefold()]

    def create_event(
        self,
        title: str,
        day: str,
        start: str,
        participants: list[str] | None = None,
        *,
        location: str = "",
        notes: str = "",
    ) -> str:
        """Put an event into the calendar and invite its participants by e-mail address."""
        row: Row = {"title": title, "day": day, "start": start, "participants": participants or []}
        return f"created {self.world.add('events', 'EV', {**row, 'location': location, 'notes': notes})}"

    def move_event(self, event_id: str, day: str, start: str) -> str:
        """Move an event to another day or time."""
        self.world.row("events", event_id).update(day=day, start=start)
        return f"{event_id} is on {day} at {start}"

    def delete_event(self, event_id: str) -> str:
        """Take an event out of the calendar."""
        del self.world.tables["events"][str(self.world.row("events", event_id)["id"])]
        return f"{event_id} is gone"

    def invite(self, event_id: str, email: str) -> str:
        """Invite somebody to an event."""
        cast("list[str]", self.world.row("events", event_id)["participants"]).append(email)
        return f"{email} is invited"

    def list_messages(self) -> list[Row]:
        """List the messages of the inbox."""
        return self.world.rows("messages")

    def read_message(self, message_id: str) -> Row:
        """Read one message."""
        return self.world.row("messages", message_id)

    def send_message(self, to: str, subject: str, body: str) -> str:
        """Send a message."""
        if "@" not in to:
            raise ValueError(f"{to!r} is no e-mail address")
        row: Row = {"to": to, "subject": subject, "text": body}
        return f"sent as {self.world.add('messages', 'M', row)}"

    def delete_message(self, message_id: str) -> str:
        """Delete a message."""
        del self.world.tables["messages"][str(self.world.row("messages", message_id)["id"])]
        return f"{message_id} is gone"

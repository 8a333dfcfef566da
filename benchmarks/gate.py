"""What the gate costs: judging a call with a long history behind it, and taking a result in. CPU, median.

    python benchmarks/gate.py [--rounds N]

The floor in the same run is what a journal does with the same call anyway: encoding its arguments and one SHA-256.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from hashlib import sha256

import orjson

from surefoot.core.gate.intent import read_words
from surefoot.core.gate.origins import having_read
from surefoot.core.gate.sources import Known, Words
from surefoot.core.gate.verdict import verdict_on
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import ToolResult, ToolSpec

RESULTS = 50
WORDS = "Please send the notes of the budget meeting to ann.lee@example.org and pay 900 to GB29NWBK60161331926819."
TEXT = {"type": "string"}
SEND = ToolSpec(
    "send_mail", "", {"type": "object", "properties": {"to": TEXT, "subject": TEXT, "body": TEXT}}, effect="communicate"
)
READ = ToolSpec("read_mail", "", {"type": "object", "properties": {"query": TEXT}}, effect="read", declared=True)
CALL = {"to": "ann.lee@example.org", "subject": "Notes", "body": "Dear Ann, here are the notes of the budget meeting."}
ODD = {**CALL, "to": "person7@blue.example"}


def mails(number: int) -> str:
    """Some 4 KB of mails, as a tool gives them."""
    return orjson.dumps(
        [
            {
                "id": number * 100 + at,
                "sender": f"person{at}@blue.example",
                "subject": f"Meeting notes {at}",
                "body": "Please find the notes of the meeting attached. We spoke of a budget of 12,000 dollars, and of "
                f"2024-05-{10 + at} for the milestone. See www.blue-notes.example/{number}/{at} for more. Best, Linda",
                "read": True,
                "at": "2024-05-15T10:00:00",
            }
            for at in range(12)
        ]
    ).decode()


def prose(number: int) -> str:
    """Some 4 KB of plain text."""
    return (f"The walk of day {number} went over the ridge and down to the lake, where nobody was to be seen. " * 60)[
        :4096
    ]


def cpu_ms(do: Callable[[], object], times: int) -> float:
    """CPU of one call, in milliseconds."""
    begun = time.process_time()
    for _ in range(times):
        do()
    return (time.process_time() - begun) * 1000 / times


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    known = Known(Words.of(read_words(WORDS)), GuardConfig())
    for number in range(RESULTS):
        text = mails(number) if number % 2 else prose(number)
        known = having_read(known, str(number), READ, {"query": "x"}, ToolResult(text, structured=bool(number % 2)))
    floor = lambda: sha256(orjson.dumps(CALL, option=orjson.OPT_SORT_KEYS)).hexdigest()  # noqa: E731  # one line is what it is
    rows: list[tuple[str, Callable[[], object], str]] = [
        ("floor: arguments encoded, one SHA-256", floor, ""),
        (f"judge, the user's own values, {RESULTS} results of 4 KB", lambda: verdict_on(known, SEND, CALL), "≤ 0.3"),
        (f"judge, a value out of a result, {RESULTS} results of 4 KB", lambda: verdict_on(known, SEND, ODD), "≤ 0.3"),
        (
            "take in 4 KB of records",
            lambda: having_read(known, "n", READ, {}, ToolResult(mails(1), structured=True)),
            "",
        ),
        ("take in 4 KB of text", lambda: having_read(known, "n", READ, {}, ToolResult(prose(1))), ""),
        ("read the user's words (110 characters)", lambda: read_words(WORDS), ""),
    ]
    print("| what | CPU, ms | asked |\n|---|---:|---:|")
    for name, do, asked in rows:
        do()
        print(f"| {name} | {statistics.median(cpu_ms(do, 20) for _ in range(rounds)):.3f} | {asked} |", flush=True)


if __name__ == "__main__":
    main()

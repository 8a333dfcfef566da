"""Mail that goes nowhere: each one becomes a line of sent.txt, once a person has allowed it."""

from pathlib import Path

from surefoot import tool


@tool(effect="communicate", approval="always")
def send_mail(to: str, body: str) -> str:
    """Send a mail.

    Args:
        to: Address of the person who gets it.
        body: What it says.
    """
    with Path("sent.txt").open("a", encoding="utf-8") as sent:
        sent.write(f"to {to}: {body}\n")
    return f"sent to {to}"

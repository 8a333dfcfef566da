"""A tool for the third task: one sentence into a file. The schema holds a model to one sentence while it writes."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from surefoot import tool

ONE_SENTENCE = r"^[A-Z][^\n.#]{20,200}\.$"


@tool(idempotent=True)
def save_summary(file: str, summary: Annotated[str, Field(pattern=ONE_SENTENCE)]) -> str:
    """Save a summary of a text in a file.

    Args:
        file: Name of the file to write, in this folder.
        summary: One sentence that sums the text up.
    """
    if Path(file).name != file:
        raise ValueError("give a name without folders")
    Path(file).write_text(summary + "\n", encoding="utf-8")
    return f"saved in {file}"

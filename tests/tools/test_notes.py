"""Natural questions to the notes of the examples: `file_search` shows the line with the answer among the first."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from surefoot.tools.builtin import file_tools
from surefoot.tools.workspace import Workspace
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
NOTES = Path(__file__).parents[2] / "examples" / "notes"

ASKED = {
    "bridge.md": """
        footbridge rebuild year | 1987
        In which year was the footbridge rebuilt? | 1987
        when was the bridge built | 1987
        bridge reconstruction year | 1987
        footbridge | 1987
        how many people can the bridge carry | twelve people
        maximum number of people on the footbridge | twelve people
        Where do horses cross the stream? | the ford
        what happened to the wooden bridge | A flood
    """,
    "ferry.md": """
        how often does the ferry run | every hour
        how long is the ferry crossing | twenty-five minutes
        bicycle price on the ferry | free of charge
        do dogs need a ticket | a muzzle
        what replaces the ferry in strong wind | a bus
    """,
    "hut.md": """
        how many beds does the hut have | twenty-four
        when is the hut open | June
        hut opening months | June
        until when is soup served | eight in the evening
        is there a mobile signal at the hut | no mobile signal
        emergency telephone location | beside the door
        can I drink the water at the hut | boiled
    """,
    "path.md": """
        how long does the ridge path take | three hours
        ridge walk duration | three hours
        what colours mark the ridge path | white and red
        number of ladders | Two short ladders
        when is the path closed | thunderstorms
        who checks the ladders | the warden
    """,
    "spring.md": """
        how much water does the spring give | eleven litres
        spring litres per minute | eleven litres
        what is the basin made of | granite
        is the spring water hard or soft | is hard
    """,
    "weather.md": """
        when do thunderstorms come | between three and six
        storms time of day | between three and six
        when does the first snow fall | October
        first snowfall month | October
        what time should I start to cross the saddle | before seven
    """,
}
CASES = [
    (note, *(part.strip() for part in line.split("|")))
    for note, lines in ASKED.items()
    for line in lines.strip().splitlines()
]


@pytest.mark.parametrize(("note", "query", "answer"), CASES)
async def test_the_answer_is_in_the_first_five_lines(
    note: str, query: str, answer: str, call: Callable[..., Awaitable[ToolResult]]
) -> None:
    search = next(tool for tool in file_tools(Workspace(NOTES)) if tool.spec.name == "file_search")
    shown = (await call(search, query=query)).content.split("\n")[:5]
    assert any(line.startswith(f"{note}:") and answer in line for line in shown), "\n".join(shown)

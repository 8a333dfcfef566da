"""The index: adding and removing gives what building anew gives, and a catalogue keeps its own."""

from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.select.index import Described, described, index_of, index_of_catalogue
from surefoot.core.select.shortlist import ranked
from surefoot.types.tools import Catalogue, ToolSpec

WORDS = st.sampled_from(["weather", "city", "file", "Read", "sendMail", "flight", "book", "天气查询", "price", "stock"])
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)
TOOLS = st.lists(
    st.builds(Described, st.sampled_from("abcdefgh"), TEXTS, TEXTS, TEXTS, parameters=TEXTS),
    max_size=8,
    unique_by=lambda tool: tool.id,
)
TASK = "read the weather of a city, then book a flight"


def test_an_index_keeps_no_words_of_tasks_that_no_tool_has() -> None:
    index = index_of([Described("a", "weather", "The weather of a city.", "")])
    for task in range(3):
        ranked(index, " ".join(f"w{task}x{at}" for at in range(100)))
    assert len(index._asked) + len(index._weights) < 20  # pyright: ignore[reportPrivateUsage]


@given(TOOLS, st.integers(0, 7))
def test_removing_and_adding_give_what_building_anew_gives(tools: list[Described], at: int) -> None:
    index = index_of(tools)
    rest = [tool for place, tool in enumerate(tools) if place != at]
    less = index.without(tools[at].id) if at < len(tools) else index
    assert ranked(less, TASK) == ranked(index_of(rest), TASK)
    assert {word: set(held.values()) for word, held in less.counts.items()} == {
        word: set(held.values()) for word, held in index_of(rest).counts.items()
    }
    if at < len(tools):
        assert ranked(less.with_tool(tools[at]), TASK) == ranked(index_of([*rest, tools[at]]), TASK)
        assert less.with_tool(tools[at]).length == index.length


@given(TOOLS)
def test_an_index_is_not_changed_by_what_is_made_of_it(tools: list[Described]) -> None:
    index = index_of(tools)
    before = ranked(index, TASK)
    index.with_tool(Described("new", "weather_of_city", "Weather of a city"))
    for tool in tools:
        index.without(tool.id)
    assert ranked(index, TASK) == before == ranked(index_of(tools), TASK)


def test_a_tool_of_the_same_id_gives_way() -> None:
    index = index_of([Described("a", "a", "weather of a city"), Described("b", "b", "stock price")])
    changed = index.with_tool(Described("a", "a", "book a flight"))
    assert [row.tool.description for row in changed.rows.values()] == ["stock price", "book a flight"]
    assert not ranked(changed, "weather of the city")
    assert index.without("missing") is index


def test_a_catalogue_keeps_its_index() -> None:
    catalogue = Catalogue((ToolSpec("weather", "Weather of a city", {}),))
    assert index_of_catalogue(catalogue) is index_of_catalogue(catalogue)
    assert index_of_catalogue(catalogue).rows[0].tool.id == "weather"


def test_parameters_are_read_from_the_schema_down_to_a_depth() -> None:
    inner: dict[str, object] = {"type": "object", "properties": {"zip": {"description": "postal code"}}}
    schema: dict[str, object] = {
        "properties": {"place": {"description": "where it is", **inner}, "days": {"type": "array", "items": inner}}
    }
    spec = ToolSpec("t", "d", schema, server="s", category="c")
    told = described(spec)
    assert told.parameters == "place where it is zip postal code days zip postal code"
    assert (told.server, told.category) == ("s", "c")
    deep: dict[str, object] = {}
    deep["properties"] = {"again": deep}
    assert described(ToolSpec("t", "d", deep)).parameters.split() == ["again"] * 4

"""Which tools fit a task, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, each
from surefoot.core.select.index import Described, Index, index_of
from surefoot.core.select.shortlist import Hit, blended, meanings, parse_task, ranked, tools_named

TOOLS = [
    Described("get_weather", "get_weather", "Current weather and temperature of a city", "weather"),
    Described("send_email", "send_email", "Send an email to a person", "mail", parameters="to address; subject; body"),
    Described("read_csv", "read_csv", "Read a CSV file into rows", "files"),
    Described("write_file", "write_file", "Write text to a file", "files"),
    Described("查询天气", "查询天气", "查询某个城市的天气预报", "weather"),
    Described("stock_price", "stock_price", "Price of a share at the stock exchange", "finance"),
    Described("movies", "movies", "Look up films by title", "media"),
    Described("search", "search", "Search the web", "web"),
]
INDEX = index_of(TOOLS)


def ids(task: str, limit: int = 20, index: Index = INDEX) -> list[str]:
    return [hit.id for hit in ranked(index, task, limit)]


@given(st.text(), st.integers(0, 5))
def test_any_string_is_a_task_and_gives_the_same_list_each_time(task: str, limit: int) -> None:
    found = ranked(INDEX, task, limit)
    assert found == ranked(index_of(TOOLS), task, limit)
    assert len(found) <= limit
    assert all(0.0 < hit.score <= 1.0 + 1e-9 for hit in found)


@given(st.text(alphabet="weather city send 天气 /.csv:\n\"'", max_size=60))
def test_any_mixture_of_words_is_a_task(task: str) -> None:
    found = ranked(INDEX, task)
    assert list(found) == sorted(found, key=lambda hit: -hit.score)


@cases("select/query")
def test_the_tool_that_fits_comes_first(task: str, best: str) -> None:
    assert ids(task)[0] == best


def test_a_chinese_task_finds_an_english_tool_and_the_other_way() -> None:
    assert "get_weather" in ids("北京天气怎么样")
    assert "查询天气" in ids("weather forecast")


@each("task", ["", " ", "?!", "the of and", "please thank you", "xyzzy plugh", "12 + 30", "'; DROP --", "\0\ud800"])
def test_a_task_that_no_tool_fits_gets_none(task: str) -> None:
    assert ids(task) == []


def test_one_common_word_alone_finds_nothing_unless_it_stands_in_the_name() -> None:
    tools = [Described(f"t{at}", f"t{at}", f"handles a record {'x' * at}") for at in range(1, 40)]
    index = index_of([*tools, Described("record_it", "record_it", "stores it")])
    assert ids("record something", index=index) == ["record_it"]


@pytest.mark.parametrize(
    "task", ["stock_price", " stock_price ", "weather of the city by stock_price please", "search"]
)
def test_an_exact_name_ranks_first(task: str) -> None:
    assert ids(task)[0] == task.strip() or ids(task)[0] == "stock_price"


def test_a_plain_word_that_is_a_name_is_first_only_by_itself() -> None:
    assert ids("search the weather of a city")[0] == "get_weather"
    assert tools_named(INDEX, "search the weather of a city") == ("search",)


@pytest.mark.parametrize(
    "text", ["use `get_weather`.", "get_weather(city)", "先用get_weather看看", "get_weather: Rome"]
)
def test_a_name_is_found_in_a_text(text: str) -> None:
    assert tools_named(INDEX, text) == ("get_weather",)


def test_only_a_whole_name_is_a_name() -> None:
    assert tools_named(INDEX, "my_get_weather2 research movieslist") == ()
    assert tools_named(INDEX, "请查询天气吧") == ("查询天气",)


def test_both_parts_of_a_task_are_found() -> None:
    assert set(ids("Get the weather of Rome, then send an email to Bob", 2)) == {"get_weather", "send_email"}


def test_equal_tools_keep_the_order_of_the_catalogue() -> None:
    twins = [Described(name, "paint_wall", "Paint a wall") for name in ("b", "a", "c")]
    assert ids("paint the wall", index=index_of(twins)) == ["b", "a", "c"]


def test_among_some_tools_scores_are_those_among_all() -> None:
    all_of_them = {hit.id: hit.score for hit in ranked(INDEX, "weather of a city")}
    (hit,) = ranked(INDEX, "weather of a city", among=frozenset({"查询天气", "movies", "unknown"}))
    assert hit == Hit("查询天气", all_of_them["查询天气"])


def test_an_encoder_is_given_the_task_with_its_clauses_and_a_text_a_tool() -> None:
    hits = (Hit("get_weather", 1.0), Hit("movies", 0.5))
    queries, texts = meanings(INDEX, "find a film, then read the weather of Rome", hits)
    assert queries == ("find a film, then read the weather of Rome", "find a film,", "read the weather of Rome")
    assert texts == ("get weather: Current weather and temperature of a city", "movies: Look up films by title")
    assert meanings(INDEX, "find a film", ())[0] == ("find a film",)


def test_what_an_encoder_says_ranks_hits_anew() -> None:
    hits = (Hit("movies", 0.75), Hit("search", 0.5), Hit("read_csv", 0.25))
    near = [(0.0, 0.25, 0.0), (0.5, 0.0, 0.5), (0.0, 0.0, 0.0)]
    assert blended(INDEX, "find it", hits, near) == (Hit("search", 1.5), Hit("movies", 1.0), Hit("read_csv", 0.25))
    assert blended(INDEX, "read_csv", hits, near, 1) == (Hit("read_csv", 0.25),)
    assert blended(INDEX, "find it", hits[:1], [(0.5,)]) == (Hit("movies", 1.75),)


def test_a_task_is_taken_apart() -> None:
    query = parse_task("Read log.csv, please. Then post the mean to the lab")
    assert query.whole == ("read", "fil", "csv", "data", "post", "mean", "lab")
    assert [words for _, words in query.clauses] == [("read", "fil", "csv", "data"), ("post", "mean", "lab")]

"""The shortlist: parts of a task merged, the named category preferred, named tools always on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.select.index import Described, index_of
from surefoot.core.select.shortlist import BEST, NEAR, category_of, ranked, shortlist, sub_queries

MAIL = [Described(f"mail_{at}", f"mail_{at}", f"Send an email letter {'x' * at}", "mail") for at in range(1, 31)]
OTHERS = [
    Described("get_weather", "get_weather", "Weather of a city", "weather"),
    Described("weather_news", "weather_news", "News about the weather and storms all over the world", "news"),
    Described("paint", "paint", "Paint a wall", "house"),
]
INDEX = index_of([*MAIL, *OTHERS])


def test_all_that_score_three_quarters_of_the_best_are_on_it_and_ten_at_least() -> None:
    found = shortlist(INDEX, ["send an email"], 100)
    hits = ranked(INDEX, "send an email", 100)
    assert len(found) > BEST
    assert list(found) == [hit.id for at, hit in enumerate(hits) if at < BEST or hit.score >= NEAR * hits[0].score]
    unlike = [Described(f"t{at}", f"weather_{at}", "weather" + " and storms" * at * 40) for at in range(20)]
    assert len(shortlist(index_of([*unlike, *OTHERS]), ["weather"], 100)) == BEST


def test_each_part_brings_its_own() -> None:
    task = "Send an email letter to Ann. Then get the weather of the city"
    queries = sub_queries(task)
    assert queries == (task, "Send an email letter to Ann", "get the weather of the city")
    assert {"get_weather", "weather_news"} <= set(shortlist(INDEX, queries, 100))
    assert shortlist(INDEX, queries, 2)[0] in {"mail_1", "get_weather"}
    assert len(shortlist(INDEX, queries, 2)) == 2


def test_a_sketch_stands_in_the_place_of_the_clauses() -> None:
    assert sub_queries("do this. do that", ["paint a wall"]) == ("do this. do that", "paint a wall")
    assert shortlist(INDEX, sub_queries("improve the house", ["paint a wall"]), 5) == ("paint",)


@pytest.mark.parametrize(
    "asked", ["weather; intent: news", "意图: news\nweather", "意图：News，weather", "intent: 'news' weather"]
)
def test_the_named_category_is_preferred_and_no_filter(asked: str) -> None:
    assert category_of(INDEX, asked) == "news"
    assert shortlist(INDEX, ["weather"], 5) == ("get_weather", "weather_news")
    assert shortlist(INDEX, ["weather"], 5, text=asked) == ("weather_news", "get_weather")


def test_tools_of_the_category_are_on_it_whatever_they_score() -> None:
    found = shortlist(INDEX, ["weather of the city"], 40, text="intent: mail")
    assert found[0] == "get_weather"
    assert sum(tool.startswith("mail") for tool in found) == BEST


def test_no_category_no_preference() -> None:
    assert category_of(INDEX, "intent: newspaper") == ""
    assert category_of(INDEX, "my intent is news") == ""
    assert (
        category_of(
            index_of([Described("a", "a", "", "天气"), Described("b", "b", "", "天气预报")]), "意图: 天气预报北京"
        )
        == "天气预报"
    )


def test_a_tool_that_the_text_names_is_on_it_whatever_it_scores() -> None:
    assert shortlist(INDEX, ["send an email"], 3, text="send an email and then paint")[0] == "paint"
    assert shortlist(INDEX, ["xyzzy"], 3, text="mail_30 paint") == ("mail_30", "paint")
    assert shortlist(INDEX, ["xyzzy"], 3) == ()


def test_failures_lower_and_successes_raise() -> None:
    assert shortlist(INDEX, ["weather"], 5, {"get_weather": 0.1}) == ("weather_news", "get_weather")
    assert shortlist(INDEX, ["weather"], 5, {"weather_news": 9.0}) == ("weather_news", "get_weather")


@given(st.lists(st.text(max_size=30), max_size=4), st.integers(0, 12), st.text(max_size=30))
def test_any_strings_will_do(queries: list[str], most: int, text: str) -> None:
    found = shortlist(INDEX, queries, most, text=text)
    assert len(found) == len(set(found)) <= most
    assert found == shortlist(INDEX, queries, most, text=text)

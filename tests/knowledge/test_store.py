"""The store: what is found by its words, what stays as it is, and what a broken file says."""

import sqlite3
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from cases import cases
from surefoot.knowledge.store import MOST_ON_TOPIC, KnowledgeStore
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.knowledge import Knowledge, KnowledgeError


@pytest.fixture
def store(tmp_path: Path) -> Generator[KnowledgeStore]:
    made = KnowledgeStore(tmp_path / "knowledge.db")
    yield made
    made.close()


def fact(text: str, **more: str) -> Knowledge:
    return Knowledge(text, scope=more.get("scope", ""), language=more.get("language", ""))


CROWD = ["rule a", "rule b", "rule c", "rule d", "odd rule e", "d"]


def found(store: KnowledgeStore, query: str, limit: int = 50) -> list[str]:
    return [entry.content for entry in store.search(query, limit)]


def test_what_is_added_comes_back_whole_with_an_id_and_a_time(store: KnowledgeStore) -> None:
    given = Knowledge(
        "Money", "is", "Decimal", "Pattern", 0.5, "src", "python", source="model", run_id="r", call_id="1"
    )
    (kept,) = store.add([given], by="")
    assert kept.content == "Money is Decimal"
    assert (kept.id, kept.created_at > 0) == ("1", True)
    assert store.search("money", 5) == (kept,)
    assert (kept.type, kept.confidence, kept.scope, kept.run_id, kept.verified) == ("Pattern", 0.5, "src", "r", False)


@pytest.mark.parametrize(
    "query", ['"', "a OR", "NEAR(", "content:x", "*", "(", "a AND NOT b", "\0", "\ud800", "x" * 100_000]
)
def test_a_query_is_words_and_never_syntax(store: KnowledgeStore, query: str) -> None:
    store.add([fact("nothing of it")], by="x")
    assert found(store, query) == []


def test_one_word_is_enough_more_of_them_rank_higher_and_equal_ranks_come_by_id(store: KnowledgeStore) -> None:
    tools = ["use tool b", "use tool a", "use tool c"]
    store.add(map(fact, ["deploy on Friday", "never deploy to production on Friday", "lunch", *tools]), by="x")
    assert found(store, "production deploy") == ["never deploy to production on Friday", "deploy on Friday"]
    assert found(store, "tool") == tools


@cases("knowledge/store")
def test_words_are_found_in_any_script_and_form(store: KnowledgeStore, text: str, query: str) -> None:
    store.add([fact(text), fact("something else")], by="x")
    assert found(store, query) == [text]


@pytest.mark.parametrize(
    ("text", "query"), [("金额用十进制表示", "进十"), ("snake and case", "snake_case"), ("src", "at")]
)
def test_what_only_looks_alike_is_not_found(store: KnowledgeStore, text: str, query: str) -> None:
    store.add([fact(text, scope="src")], by="x")
    assert found(store, query) == []


def test_the_same_content_for_one_place_is_kept_once(store: KnowledgeStore) -> None:
    kept = store.add([fact("use  tabs"), fact("use tabs "), fact("Use tabs"), fact("use tabs", scope="src")], by="x")
    assert [entry.id for entry in kept] == ["1", "1", "2", "3"]


def test_a_model_cannot_change_what_a_person_vouched_for(store: KnowledgeStore) -> None:
    store.add([Knowledge("use tabs", confidence=0.9)], by="Ada")
    (kept,) = store.add([Knowledge("use tabs", confidence=0.1)], by="")
    assert (kept.id, kept.confidence, kept.verified_by) == ("1", 0.9, "Ada")


def test_who_adds_what_a_model_stored_vouches_for_the_own_words_alone(store: KnowledgeStore) -> None:
    theirs = Knowledge("use\n\ntabs\n", "for", "money", confidence=0.1, source="model", run_id="r", call_id="1.0")
    store.add([theirs], by="")
    mine = Knowledge("use tabs for money", confidence=0.9, source="operator")
    (kept,) = store.add([mine], by="Ada")
    assert kept == replace(mine, verified_by="Ada", id="1", created_at=kept.created_at)
    assert [entry.id for entry in store.search("tabs money", 5)] == ["1"]


def test_a_blank_name_vouches_for_nothing(store: KnowledgeStore) -> None:
    (kept,) = store.add([fact("use tabs", scope=".")], by=" ")
    assert (kept.verified, kept.verified_by) == (False, "")
    assert not Knowledge("use tabs", verified_by=" ").verified
    assert store.on_topic(["."], "tabs") == []


def test_what_nobody_vouches_for_takes_no_place_on_a_topic(store: KnowledgeStore) -> None:
    store.add((fact(f"query of a database {at}", scope="src") for at in range(MOST_ON_TOPIC + 1)), by="")
    store.add([fact("a database query uses parameters", scope="src")], by="Ada")
    assert [match.number for match in store.on_topic(["src"], "database")] == [MOST_ON_TOPIC + 2]
    store.verify("1", by="Ada")
    assert [match.number for match in store.on_topic(["src"], "database")] == [1, MOST_ON_TOPIC + 2]


def test_the_surest_of_many_on_a_topic_comes_first(store: KnowledgeStore) -> None:
    store.add((Knowledge(f"logging rule {at}", scope=".", confidence=0.1) for at in range(300)), by="Ada")
    store.add([Knowledge("log with the logging rule", scope=".", confidence=1.0)], by="Ada")
    assert store.on_topic(["."], "logging")[0].number == 301


def test_what_nobody_vouches_for_makes_no_word_a_language(store: KnowledgeStore) -> None:
    store.add([fact("a note", language="testing")], by="")
    assert not store.knows_language("testing")
    store.verify("1", by="Ada")
    assert store.knows_language("testing")


@pytest.mark.parametrize(
    ("change", "error"),
    [("UPDATE entry SET type='Rule'", "entry 1 cannot be read"), ("PRAGMA user_version=99", "form 99")],
)
def test_what_others_changed_is_an_error(store: KnowledgeStore, tmp_path: Path, change: str, error: str) -> None:
    store.add([fact("use tabs")], by="Ada")
    store.close()
    with sqlite3.connect(tmp_path / "knowledge.db") as db:
        db.execute(change)
    db.close()
    with pytest.raises(KnowledgeError, match=error):
        store.search("tabs", 5)


def test_a_person_verifies_by_name_and_only_what_is_there(store: KnowledgeStore) -> None:
    store.add([fact("use tabs")], by="")
    assert store.verify("1", by="Ada").verified_by == "Ada"
    with pytest.raises(UsageError, match="name"):
        store.verify("1", by=" ")
    for unknown in ("2", "x", "", "-1", "9" * 30):
        with pytest.raises(UsageError, match="unknown entry"):
            store.verify(unknown, by="Ada")


def test_entries_are_added_all_or_none(store: KnowledgeStore) -> None:
    with pytest.raises(ConfigError, match=r"object=.*2,000"):
        store.add([fact("kept?"), Knowledge("a", "b", "c" * 2_001)], by="x")
    assert found(store, "kept") == []


def test_many_entries_are_added_and_given_back_in_order(store: KnowledgeStore) -> None:
    kept = store.add((fact(f"rule {at}") for at in range(1_200)), by="x")
    assert [entry.content for entry in kept] == [f"rule {at}" for at in range(1_200)]


@cases("knowledge/store")
def test_what_comes_first_where_too_many_entries_match(
    tmp_path: Path, most_ranked: int, facts: list[str], query: str, expected: list[str]
) -> None:
    store = KnowledgeStore(tmp_path / "crowded.db", most_ranked=most_ranked)
    store.add(map(fact, facts), by="x")
    assert found(store, query, len(expected)) == expected
    store.close()


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_store_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "knowledge.db"
    path.write_bytes(content)
    store = KnowledgeStore(path)
    with pytest.raises(KnowledgeError, match=r"knowledge store .*knowledge\.db: .*; "):
        store.search("x", 5)
    assert path.read_bytes() == content


def test_the_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE entry (id INTEGER)")
    db.close()
    with pytest.raises(KnowledgeError, match="another program"):
        KnowledgeStore(path).add([fact("x")], by="x")


def test_a_torn_file_is_an_error_and_never_an_empty_answer(store: KnowledgeStore, tmp_path: Path) -> None:
    store.add((fact(f"rule {at}") for at in range(2_000)), by="x")
    store.close()
    path = tmp_path / "knowledge.db"
    path.write_bytes(path.read_bytes()[:40_000])
    with pytest.raises(KnowledgeError, match="damaged"):
        store.search("rule", 5)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="its folder must exist"):
        KnowledgeStore(tmp_path / "no" / "k.db").search("x", 5)
    with pytest.raises(KnowledgeError, match="name a file, not a folder"):
        KnowledgeStore(tmp_path).search("x", 5)


def test_two_stores_on_one_file_see_each_other(store: KnowledgeStore, tmp_path: Path) -> None:
    other = KnowledgeStore(tmp_path / "knowledge.db")
    store.add([fact("from one")], by="x")
    other.add([fact("from two")], by="x")
    assert found(store, "from") == found(other, "from") == ["from one", "from two"]
    other.close()


@pytest.mark.parametrize("confidence", [7.5, -0.1, float("nan"), float("inf"), True, "1"])
def test_a_confidence_is_a_number_from_0_to_1(confidence: float) -> None:
    with pytest.raises(ConfigError, match="from 0 to 1"):
        Knowledge("x", confidence=confidence)

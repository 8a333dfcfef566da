"""What is known of models beforehand, and what is learnt and kept."""

from collections.abc import Mapping
from pathlib import Path

from cases import cases
from surefoot.models.traits import EXPIRES_S, LearntTrait, Remembered, dump, known_traits, load, merge, parse, save

WHO = "openai_chat http://localhost/v1 m"
NO_STOP = Remembered({WHO: {"stop": LearntTrait("no", "400", 100.0)}})


def test_comes_back_as_it_was_kept() -> None:
    assert parse(dump(NO_STOP), 100.0) == NO_STOP
    assert NO_STOP.traits_of(WHO) == {"stop": "no"}
    assert NO_STOP.traits_of("another") == {}


def test_expires_after_thirty_days() -> None:
    assert parse(dump(NO_STOP), 100.0 + EXPIRES_S) == NO_STOP
    assert parse(dump(NO_STOP), 101.0 + EXPIRES_S) == Remembered()


def test_a_torn_or_foreign_file_is_empty_and_says_so() -> None:
    raw = dump(NO_STOP)
    assert "torn" in parse(raw[:-5], 0).problem
    assert "version" in parse(b'{"version": 9}', 0).problem
    assert parse(b"", 0) == Remembered()
    assert parse(b'{"version":1,"models":{"m":{"stop":3,"x":{"value":1,"at":1}}}}', 0) == Remembered()


def test_the_later_word_wins() -> None:
    later = Remembered({WHO: {"stop": LearntTrait("yes", "", 200.0)}, "other": {}})
    assert merge(NO_STOP, later).traits_of(WHO) == {"stop": "yes"}
    assert merge(later, NO_STOP).traits_of(WHO) == {"stop": "yes"}


def test_saving_adds_to_what_others_saved(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "traits.json"
    assert load(path, 0) == Remembered()
    save(path, NO_STOP, 100.0)
    save(path, Remembered({"other": {"seed": LearntTrait("no", "", 100.0)}}), 100.0)
    kept = load(path, 100.0)
    assert (kept.traits_of(WHO), kept.traits_of("other")) == ({"stop": "no"}, {"seed": "no"})
    assert [file.name for file in path.parent.iterdir()] == ["traits.json"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert "could not be kept" in save(tmp_path / "file" / "traits.json", NO_STOP, 0).problem


@cases("models/traits")
def test_the_table_of_known_models(host: str, model: str, knows: Mapping[str, str | None]) -> None:
    traits = known_traits(host, model)
    assert {trait: traits.get(trait) for trait in knows} == knows
    assert known_traits("my.host", "llama-3") == {}


def test_a_habit_counts_once_two_runs_have_shown_it(tmp_path: Path) -> None:
    path = tmp_path / "traits.json"

    def learn(value: str, run: str, at: float) -> dict[str, str]:
        learnt = Remembered({WHO: {"native_tools": LearntTrait(value, "", at, (run,))}})
        return save(path, learnt, at).traits_of(WHO)

    assert learn("weak", "one", 100.0) == {}
    assert learn("weak", "one", 101.0) == {}  # the same run again is one run
    assert learn("weak", "two", 102.0) == {"native_tools": "weak"}
    assert load(path, 102.0).traits_of(WHO) == {"native_tools": "weak"}
    assert learn("no", "three", 103.0) == {"native_tools": "no"}  # an endpoint's refusal is no habit
    assert learn("weak", "four", 104.0) == {}
    old = b'{"version":1,"models":{"m":{"native_tools":{"value":"weak","evidence":"x","at":1}}}}'
    assert parse(old, 1.0).traits_of("m") == {}  # from before runs were kept

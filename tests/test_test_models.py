"""The models of `surefoot.testing`, used wrongly: what is wrong is said where it is written, in words of the test."""

from typing import Any

import pytest

from surefoot import Agent, ConfigError, UsageError
from surefoot.testing.models import ChaosModel, FunctionModel, ScriptedModel, calls

WRONG: list[Any] = [5, None, ValueError("x"), ["a"]]
NOT_PAIRS: list[Any] = [("look", {"q": 1}), (("look",),), (("look", {}, 3),), (("look", [1]),), ((5, {}),)]
NOT_MODES: list[Any] = ["text", ("texts",)]


@pytest.mark.parametrize("entry", WRONG)
def test_a_script_of_something_else_is_refused_where_it_is_written(entry: Any) -> None:
    with pytest.raises(ConfigError, match=r"^script=.*: make each reply a text, a JSON object, a ModelMessage or"):
        ScriptedModel(["a", entry])


@pytest.mark.parametrize("wanted", NOT_PAIRS)
def test_calls_that_are_not_pairs_are_refused(wanted: Any) -> None:
    with pytest.raises(UsageError, match=r"^calls: give each call in parentheses of its own"):
        calls(*wanted)


def test_settings_that_no_model_has_are_refused() -> None:
    for modes in NOT_MODES:
        with pytest.raises(ConfigError, match=r"^modes=.*: give some of \('native', 'schema', 'text'\)"):
            ScriptedModel(["a"], modes=modes)
    with pytest.raises(ConfigError, match="give a function of the request"):
        FunctionModel(NOT_MODES[0])
    with pytest.raises(ConfigError, match="share=2: give a number from 0 to 1"):
        ChaosModel(ScriptedModel(["a"]), share=2)


def test_a_function_that_gives_no_reply_fails_its_run_in_words() -> None:
    def nothing(_: object) -> Any:
        return None

    run = Agent(FunctionModel(nothing)).run_sync("Hello?")
    assert (run.status, run.reason) == ("failed", "bad_request")
    assert run.detail.startswith("the function of the test model gave a NoneType; return a text, a JSON object")

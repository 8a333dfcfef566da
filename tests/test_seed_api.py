"""What seed 003 names is there, with its signatures: names, order, kinds and defaults as in its tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import get_type_hints

import surefoot
from cases import each
from surefoot import DualModelReasoner, FunctionCallResult, ModelMessage, ModelService, MonoModelReasoner, Task
from surefoot.reasoners import Answer
from surefoot.recall import ReasonerMemory

NEEDED = inspect.Parameter.empty

TABLES: Sequence[tuple[Callable[..., object], Mapping[str, object], bool]] = (
    (ModelService.generate, {"sys_prompt": NEEDED, "messages": NEEDED, "tools": None}, True),
    (ModelService.call_function, {"tools": NEEDED, "model_response_text": NEEDED}, True),
    *((one.infer, {"task": NEEDED}, True) for one in (MonoModelReasoner, DualModelReasoner)),
    *((one.conclude, {"reasoner_memory": NEEDED}, True) for one in (MonoModelReasoner, DualModelReasoner)),
    *((one.stopped, {"message": NEEDED}, False) for one in (MonoModelReasoner, DualModelReasoner)),
)


@each(("method", "parameters", "is_async"), TABLES)
def test_a_method_has_the_signature_of_the_seed(
    method: Callable[..., object], parameters: Mapping[str, object], *, is_async: bool
) -> None:
    found = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
    positional = [each for each in found if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert {each.name: each.default for each in positional} == parameters
    assert [each.name for each in positional] == list(parameters)
    added = [each for each in found if each not in positional]
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY and each.default is not NEEDED for each in added)
    assert inspect.iscoroutinefunction(method) is is_async


def test_what_the_methods_take_and_give_is_what_the_seed_says() -> None:
    assert get_type_hints(ModelService.generate)["return"] is ModelMessage
    assert get_type_hints(ModelService.call_function)["return"] == list[FunctionCallResult] | None
    for reasoner in (MonoModelReasoner, DualModelReasoner):
        assert isinstance(inspect.getattr_static(reasoner, "stopped"), staticmethod)
        assert get_type_hints(reasoner.stopped) == {"message": ModelMessage, "return": bool}
        assert get_type_hints(reasoner.infer) == {"task": Task | str, "return": Answer}
        assert get_type_hints(reasoner.conclude) == {"reasoner_memory": ReasonerMemory, "return": Answer}
    assert issubclass(Answer, str)

    streamed, generated = (inspect.signature(one).parameters for one in (ModelService.stream, ModelService.generate))
    assert streamed == generated


def test_what_the_seed_names_stands_at_the_front_door() -> None:
    named = {ModelService, FunctionCallResult, MonoModelReasoner, DualModelReasoner, ModelMessage, Task}
    assert {one.__name__ for one in named} <= {*surefoot.__all__}


def test_a_result_has_the_fields_of_the_original_first() -> None:
    failed = FunctionCallResult.failed(2, "malformed_json", "Send plain JSON.")
    assert " ".join(failed.__dataclass_fields__).startswith("func_name func_args call_objective output status ")
    assert (failed.position, failed.status) == (2, "FAILED")
    assert (failed.error, failed.output) == ("malformed_json", "Send plain JSON.")

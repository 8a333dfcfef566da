"""What seed 003 names is there, with its signatures: names, order, kinds and defaults as in its tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import get_type_hints

import surefoot
from cases import each
from surefoot import DualModelReasoner, FunctionCallResult, ModelMessage, ModelService, MonoModelReasoner, Task
from surefoot.reasoners import Answer
from surefoot.recall import ReasonerMemory

NEEDED = inspect.Parameter.empty

TABLES: list[
    tuple[Callable[..., object], Mapping[str, object], bool]
] = [  # method, its parameters with defaults, is async
    (ModelService.generate, {"sys_prompt": NEEDED, "messages": NEEDED, "tools": None}, True),
    (ModelService.call_function, {"tools": NEEDED, "model_response_text": NEEDED}, True),
    *[
        row
        for reasoner in (MonoModelReasoner, DualModelReasoner)
        for row in (
            (reasoner.infer, {"task": NEEDED}, True),
            (reasoner.conclude, {"reasoner_memory": NEEDED}, True),
            (reasoner.stopped, {"message": NEEDED}, False),
        )
    ],
]


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


def test_a_stream_takes_what_generate_takes() -> None:
    streamed, generated = (inspect.signature(one).parameters for one in (ModelService.stream, ModelService.generate))
    assert streamed == generated


def test_what_the_seed_names_stands_at_the_front_door() -> None:
    for name in (
        "ModelService",
        "FunctionCallResult",
        "MonoModelReasoner",
        "DualModelReasoner",
        "ModelMessage",
        "Task",
    ):
        assert name in surefoot.__all__


def test_a_result_has_the_fields_of_the_original_first() -> None:
    assert list(FunctionCallResult.__dataclass_fields__)[:5] == [
        "func_name", "func_args", "call_objective", "output", "status",
    ]  # fmt: skip
    failed = FunctionCallResult.failed(2, "malformed_json", "Send plain JSON.")
    assert (failed.position, failed.status, failed.error, failed.output) == (
        2,
        "FAILED",
        "malformed_json",
        "Send plain JSON.",
    )

"""`@tool`: schemas, Python values, services, errors, threads."""

from __future__ import annotations

import asyncio
import contextvars
import enum
import functools
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, ConfigDict, Field

from cases import cases, each
from surefoot.tools.call import OutcomeUnknown, ToolFailed
from surefoot.tools.function import FunctionTool, tool
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.ports import Tool, ToolCallContext
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
Call = Callable[..., Awaitable[ToolResult]]
INTEGER, YEARS = {"type": "integer"}, {"description": "Years."}


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    title: str
    x: int


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date


@dataclass
class Pair:
    left: int
    right: Point


def schema_of(made: Tool) -> dict[str, Any]:  # Any: a schema is walked by keys here
    return cast("dict[str, Any]", made.spec.parameters)


def property_of(made: Tool, name: str = "x") -> dict[str, Any]:  # Any: as above
    return schema_of(made)["properties"][name]


class TestDeclaration:
    def test_the_bare_decorator_takes_all_from_the_function(self) -> None:
        @tool
        async def exam_score(name: str, year: int = 2024) -> int:
            """Exam score of one student."""
            return len(name) + year

        spec = exam_score.spec
        assert (spec.name, spec.description) == ("exam_score", "Exam score of one student.")
        assert (spec.effect, spec.idempotent, spec.may_repeat, spec.origin) == ("write", False, False, "local")
        assert spec.parameters == {
            "type": "object",
            "properties": {"name": {"type": "string"}, "year": {"type": "integer", "default": 2024}},
            "additionalProperties": False,
            "required": ["name"],
        }

    def test_everything_can_be_said(self) -> None:
        def look(x: int) -> None:
            del x

        said: dict[str, Any]  # Any: of any type
        said = {"effect": "delete", "timeout_s": 5, "name": "看", "description": "Looks."}
        said |= dict.fromkeys(("idempotent", "polling", "finish", "verified"), True)
        spec = tool(look, probe=look, **said).spec
        assert {name: getattr(spec, name) for name in said} == said
        assert spec.has_probe

    async def test_it_stays_the_function(self) -> None:
        @tool
        async def double(x: int) -> int:
            """Twice."""
            return 2 * x

        assert await double(4) == 8
        assert (double.name, double.__doc__) == ("double", "Twice.")
        assert repr(double) == "FunctionTool('double', effect='write')"

    async def test_a_tool_can_be_declared_anew(self, call: Call) -> None:
        @tool(effect="read", probe=lambda: None)
        def look() -> str:
            return "seen"

        again = tool(look, effect="delete", name="other")
        assert (again.name, again.spec.effect, again.spec.has_probe) == ("other", "delete", False)
        assert (look.name, look.spec.effect, look.spec.has_probe) == ("look", "read", True)
        assert (await call(again)).content == "seen"

    @pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a/b", "a:b", "1 2", "<lambda>"])
    def test_bad_names_are_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match="tool name"):
            tool(lambda: None, name=name)

    @pytest.mark.parametrize("name", ["a-b.c_d", "查询成绩", "x" * 64, "9lives", "été"])
    def test_letters_of_any_script_are_names(self, name: str) -> None:
        assert tool(lambda: None, name=name).spec.name == name

    def test_values_out_of_range_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="effect"):
            tool(effect=cast("Any", "wrote"))  # Any: the type checker knows it is wrong
        for timeout_s in (0, -1, float("inf"), float("nan")):
            with pytest.raises(ConfigError, match="timeout_s"):
                tool(timeout_s=timeout_s)


class TestSignatures:
    def test_what_no_model_can_fill_is_refused_at_once(self) -> None:
        def args(*x: int) -> None: ...
        def kwargs(**x: int) -> None: ...
        def positional(x: int, /) -> None: ...
        def type_(x) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001  # the case
        def annotated(x: int = Field(default=1)) -> None: ...

        cases: list[Any] = [args, kwargs, positional, type_, annotated]  # Any: one has no types, which is the case
        for function in cases:
            name = function.__name__
            with pytest.raises(UsageError, match=rf"(?i)tool '{name}', parameter 'x': .*{name.strip('_')}"):
                tool(function)

    def test_a_stream_is_refused(self) -> None:
        def stream() -> Any:  # Any: it is never run
            yield 1

        with pytest.raises(UsageError, match="stream"):
            tool(stream)

    async def test_a_stream_that_was_not_seen_is_told_as_one_and_not_by_its_address(self, call: Call) -> None:
        def kept(fn: Callable[..., object]) -> Callable[..., object]:
            @functools.wraps(fn)
            def inner() -> object:
                return fn()

            return inner

        def stream() -> Any:  # Any: it is never run
            yield 1

        async def later() -> Any:  # Any: the same
            yield 1

        for each_of in (stream, later):
            result = await call(tool(kept(each_of)))
            assert (result.kind, result.error) == ("error", "tool:stream")
            assert result.content.startswith(f"nothing of {each_of.__name__} was run: it gives a stream, but")
        result = await call(tool(kept(lambda: (one for one in [1])), name="lazy"))
        assert (result.kind, "items were not read" in result.content) == ("ok", True)

    async def test_all_values_that_their_types_refuse_are_told_at_once(self, call: Call) -> None:
        @tool
        def meet(day: date, at: Point, x: int) -> None: ...

        result = await call(meet, day="x", at={"title": 3, "x": "no"}, x=1)
        assert result.kind == "error"
        assert re.match(r"Invalid arguments: day: .*; at\.title: .*; at\.x: ", result.content)
        assert result.content.count("Invalid arguments") == 1

    @pytest.mark.parametrize("annotation", ["Nowhere", threading.Lock, Callable[[int], int]])
    def test_a_type_that_is_unknown_or_without_schema_names_tool_and_parameter(self, annotation: object) -> None:
        def lost(day: date, x: int) -> None: ...

        lost.__annotations__["x"] = annotation
        why = "Nowhere" if annotation == "Nowhere" else "has no JSON Schema"
        with pytest.raises(UsageError, match=rf"tool 'lost', parameter 'x'.*{why}"):
            _ = tool(lost).spec

    def test_names_where_the_tool_was_decorated_are_known(self) -> None:
        class Local(BaseModel):
            x: int

        @tool
        def take(x: Local, y: list[Local]) -> None: ...

        assert property_of(take)["$ref"] == "#/$defs/Local"
        assert property_of(take, "y")["items"] == {"$ref": "#/$defs/Local"}

    def test_a_method_a_partial_and_a_callable_object(self) -> None:
        class Shop:
            def price(self, item: str, tax: float = 0.1) -> str:
                """Price of an item."""
                return f"{item} {tax}"

            async def __call__(self, item: str) -> str:
                """Ask the shop."""
                return item

        shop = Shop()
        assert tool(shop.price).spec.description == "Price of an item."
        assert list(schema_of(tool(shop.price))["properties"]) == ["item", "tax"]
        assert list(schema_of(tool(functools.partial(shop.price, tax=0.2)))["properties"]) == ["item"]
        assert tool(shop, name="shop").spec.description == "Ask the shop."
        assert tool(functools.partial(shop.price, tax=0.2)).spec.name == "price"

    @pytest.mark.parametrize("annotation", [
        ToolCallContext, "ToolCallContext", "ToolCallContext | None", ToolCallContext | None,
        Annotated[ToolCallContext, "why"],
    ])  # fmt: skip
    async def test_the_context_is_hidden_and_filled(self, annotation: object, call: Call) -> None:
        def who(x: int, ctx: Any) -> str:  # Any: the annotation is the case
            return f"{x} {ctx.idempotency_key}"

        who.__annotations__["ctx"] = annotation
        made = tool(who)
        assert list(schema_of(made)["properties"]) == ["x"]
        assert (await call(made, x=1)).content == "1 key"
        assert (await call(made, x=1, ctx="forged")).content == "1 key"


class TestSchemas:
    @each(("annotation", "schema"), [
        (str, {"type": "string"}), (float, {"type": "number"}), (bool, {"type": "boolean"}), (Any, {}),
        (dict, {"type": "object", "additionalProperties": True}), (list, {"type": "array", "items": {}}),
        (list[dict[str, int]], {"type": "array", "items": {"type": "object", "additionalProperties": INTEGER}}),
        (int | None, {"anyOf": [INTEGER, {"type": "null"}]}), (date, {"type": "string", "format": "date"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}), (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}), (Annotated[int, "Years."], INTEGER | YEARS),
        (Annotated[int, Field(ge=0, description="Years.")], INTEGER | YEARS | {"minimum": 0}),
        (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}),
    ])  # fmt: skip
    def test_each_type_has_its_schema(self, annotation: object, schema: object) -> None:
        def take(x: Any) -> None: ...  # Any: the annotation is the case

        take.__annotations__["x"] = annotation
        assert property_of(tool(take)) == schema

    def test_definitions_are_kept_and_titles_go_but_not_a_property_of_that_name(self) -> None:
        @tool
        def take(x: Point, y: list[Pair]) -> None: ...

        schema = schema_of(take)
        assert schema["$defs"]["Point"] == {
            "description": "A place.", "type": "object",
            "properties": {"title": {"type": "string"}, "x": {"type": "integer"}}, "required": ["title", "x"],
        }  # fmt: skip
        assert schema["properties"]["x"]["$ref"] == "#/$defs/Point"
        assert set(schema["$defs"]) == {"Point", "Pair"}

    def test_defaults_are_kept_as_json(self) -> None:
        @tool
        def take(
            a: Colour = Colour.RED,
            b: date = date(2024, 1, 2),
            c: float = float("inf"),
            d: str = None,  # type: ignore[assignment]  # noqa: RUF013  # the case: null may be sent
        ) -> None: ...

        assert property_of(take, "a")["default"] == "red"
        assert property_of(take, "b")["default"] == "2024-01-02"
        assert "default" not in property_of(take, "c")
        assert property_of(take, "d") == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}

    @cases("tools/function")
    def test_docstrings_of_each_style(self, doc: str) -> None:
        def say(x: str) -> None: ...

        say.__doc__ = doc
        spec = tool(say).spec
        assert spec.description == "Say it.\n\nLoudly."
        assert property_of(tool(say))["description"] == "what to say"


class TestCalls:
    async def test_values_arrive_as_their_types(self, call: Call) -> None:
        @tool
        async def take(
            *, colour: Colour, point: Point, pair: Pair, day: date, many: set[int], strict: Strict, n: int, f: float
        ) -> str:
            return repr((colour, point, pair, day, many, strict, n, f))

        point, on = {"title": "t", "x": 1}, "2024-01-02"
        pair, strict = {"left": 1, "right": point}, {"day": on}
        given = {"colour": "blue", "point": point, "pair": pair, "day": on, "many": [1], "strict": strict, "n": 2.0}
        a_point, day = Point(title="t", x=1), date(2024, 1, 2)
        wanted = (Colour.BLUE, a_point, Pair(1, a_point), day, {1}, Strict(day=day), 2, 3.0)
        assert (await call(take, **given, f=3)).content == repr(wanted)

    async def test_whatever_made_it_what_is_awaitable_is_awaited(self, call: Call) -> None:
        async def answer(x: int) -> int:
            return x

        class Asked:
            async def __call__(self, x: int) -> int:
                return x

            async def method(self, x: int) -> int:
                return x

        @functools.wraps(answer)
        def wrapped(*args: Any, **kwargs: Any) -> Any:  # Any: any call goes through
            return answer(*args, **kwargs)

        def hidden(x: int) -> Awaitable[int]:
            return answer(x)

        made = [answer, functools.partial(answer), Asked().method, wrapped, hidden]
        for answering in [*(tool(one) for one in made), tool(Asked(), name="asked")]:
            assert (await call(cast("Tool", answering), x=7)).content == "7"

    async def test_a_sync_function_runs_in_a_thread_with_its_context(self, call: Call) -> None:
        variable = contextvars.ContextVar("variable", default="unset")
        variable.set("set")

        @tool
        def where() -> list[str]:
            return [threading.current_thread().name.split("_")[0], variable.get()]

        assert (await call(where)).content == '["surefoot-tool","set"]'

    async def test_many_sync_tools_run_at_once(self) -> None:
        barrier = threading.Barrier(40, timeout=10)

        @tool
        def meet() -> str:
            barrier.wait()
            return "met"

        contexts = [ToolCallContext("run", str(number), f"key {number}") for number in range(40)]
        results = await asyncio.gather(*(meet.call({}, context) for context in contexts))
        assert {result.content for result in results} == {"met"}

    async def test_an_exception_is_a_result(self, call: Call) -> None:
        def raising(error: BaseException) -> FunctionTool[..., None]:
            def fail() -> None:
                raise error

            return tool(fail)

        group = ExceptionGroup("g", [ValueError("a"), KeyError("b")])
        wordless = type("Wordless", (ToolFailed,), {"__str__": None})
        for error, content, named in (
            (ValueError("no"), "ValueError: no", "parameter:ValueError"),
            (ValueError(), "ValueError", "parameter:ValueError"),
            (StopIteration(3), "RuntimeError: coroutine raised StopIteration", "tool:RuntimeError"),  # does not hang
            (ConnectionRefusedError("gone"), "ConnectionRefusedError: gone", "transient:ConnectionRefusedError"),
            (TimeoutError(), "TimeoutError", "timeout:timeout"),
            (FileNotFoundError("x"), "FileNotFoundError: x", "tool:FileNotFoundError"),
            (group, "ValueError: a; KeyError: 'b'", "parameter:ValueError"),
            (ToolFailed("Say it otherwise."), "Say it otherwise.", "tool:failed"),
            (ToolFailed("No.", code="E7"), "No.", "tool:E7"),
            (ToolFailed("No.", code="external:E8"), "No.", "external:E8"),
            (ToolFailed("No.", infrastructure=True), "No.", "transient:failed"),
            (wordless("No.", infrastructure=True, code="E9"), "Wordless", "transient:E9"),
        ):
            is_ours = named.partition(":")[0] in ("transient", "timeout")
            expected = ToolResult(content, kind="error", infrastructure=is_ours, error=named)
            assert await call(raising(error)) == expected
        assert (await call(raising(OutcomeUnknown("who knows")))).kind == "in_doubt"
        assert len((await call(raising(ValueError("x" * 9000)))).content) == 2000

    async def test_the_log_shows_where_to_whoever_asks(self, call: Call, caplog: pytest.LogCaptureFixture) -> None:
        @tool
        def failing() -> None:
            """Fails."""
            raise KeyError("Ann")

        with caplog.at_level("INFO"):
            await call(failing)
        assert not caplog.text  # it may tell secrets
        with caplog.at_level("DEBUG"):
            await call(failing)
        assert ", in failing\n" in caplog.text

    async def test_cancellation_and_interrupts_go_through(self, call: Call) -> None:
        @tool
        async def cancelled() -> None:
            raise asyncio.CancelledError

        @tool
        async def leaving() -> None:
            raise SystemExit(3)

        with pytest.raises(asyncio.CancelledError):
            await call(cancelled)
        with pytest.raises(SystemExit):
            await call(leaving)


class TestProbe:
    async def test_it_gets_what_it_names(self, context: ToolCallContext) -> None:
        async def was_sent(number: str, ctx: ToolCallContext) -> str | None:
            return f"sent {ctx.call_id}" if number == "m1" else None

        @tool(probe=was_sent)
        def send(number: str, text: str) -> None: ...

        assert await send.probe({"number": "m1", "text": ""}, context) == ToolResult("sent call")
        assert await send.probe({"number": "m2", "text": ""}, context) is None

    async def test_an_exception_of_the_probe_goes_through(self, context: ToolCallContext) -> None:
        def ask() -> None:
            raise ConnectionError("down")

        async def ask_on_loop() -> None:
            raise LookupError("down")

        for probe, raised in ((ask, ConnectionError), (ask_on_loop, LookupError)):
            with pytest.raises(raised, match="down"):
                await tool(lambda: None, name="send", probe=probe).probe({}, context)

    def test_it_cannot_ask_for_what_the_tool_does_not_take(self) -> None:
        def ask(other: str) -> None: ...

        with pytest.raises(UsageError, match="other"):
            _ = tool(lambda: None, name="send", probe=ask).spec

"""Services as parameters: which annotation asks for which, what is checked when a tool is bound, what stays hidden."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NewType, Optional, TypeVar, Union, cast

import pytest
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from cases import each
from surefoot.tools.function import FunctionTool, tool
from surefoot.tools.signature import Inject
from surefoot.types.errors import UsageError
from surefoot.types.messages import ToolProgress
from surefoot.types.ports import ServiceKey, ToolCallContext
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio


class Db:
    """A service: no data, so no model could fill it."""

    def __init__(self, name: str = "db") -> None:
        self.name = name

    def __repr__(self) -> str:
        return "Db(password=hunter2)"


class FakeDb(Db):
    pass


class OtherDb(Db):
    pass


class Cache:
    name = "cache"


class Settings(BaseModel):
    name: str = "settings"


@dataclass
class Point:
    x: int


ReadDb = NewType("ReadDb", Db)
Reader = NewType("Reader", ReadDb)
Store = TypeAliasType("Store", Db)
MaybeStore = TypeAliasType("MaybeStore", Store | None)
Tree = TypeAliasType("Tree", dict[str, Union["Tree", Db]])
T = TypeVar("T")
Many = TypeAliasType("Many", list[T], type_params=(T,))


class Given:
    """A line to a run that has these services."""

    cancelled = False

    def __init__(self, services: Mapping[ServiceKey, object]) -> None:
        self.services = services

    def tell(self, signal: ToolProgress) -> None:
        del signal

    async def service(self, key: ServiceKey) -> object:
        return self.services[key]


def asking(annotation: object, **default: object) -> FunctionTool[..., str]:
    """A tool with a number for the model, and a parameter `db` with that annotation."""

    def count(label: int, db: Any) -> str:  # Any: the annotation is the case
        return f"{label} {getattr(db, 'name', db)}"

    count.__annotations__["db"] = annotation
    count.__defaults__ = tuple(default.values())
    return tool(count)


def names(made: FunctionTool[..., Any]) -> list[str]:  # Any: whatever it gives
    return list(cast("dict[str, Any]", made.spec.parameters["properties"]))  # Any: a schema is walked by keys


@pytest.fixture
def given(context: ToolCallContext) -> Callable[[Mapping[ServiceKey, object]], ToolCallContext]:
    return lambda services: replace(context, _line=Given(services))


Provide = Callable[[Mapping[ServiceKey, object]], ToolCallContext]
DB, FAKE, CACHE = Db(), FakeDb("fake"), Cache()


class TestForms:
    @pytest.mark.parametrize("annotation", [
        Db, "Db",
        Optional[Db],  # noqa: UP045  # the case
        "Optional[Db]", Db | None, "Db | None",
        Union[Db, None],  # noqa: UP007  # the case
        Db | str, "Union[str, Db, None]", Annotated[Db, "the graph"], "Annotated[Db, 'the graph']",
        Annotated[Db | None, "the graph"],
        Optional[Annotated[Db, "the graph"]],  # noqa: UP045  # pyright knows no other way
        ReadDb, Reader, ReadDb | None, Store, "Store", MaybeStore, Annotated[Store, "the graph"],
    ])  # fmt: skip
    async def test_each_form_asks_for_the_service_and_hides_it(self, annotation: object, given: Provide) -> None:
        made = asking(annotation).bound({Db})
        assert names(made) == ["label"]
        assert made.spec.parameters["required"] == ["label"]
        assert made.spec.injected == ("db",)
        assert await made.call({"label": 1, "db": "forged"}, given({Db: DB})) == ToolResult("1 db")

    @pytest.mark.parametrize("annotation", [
        Annotated[Db, Inject("archive")], "Annotated[Db, Inject('archive')]",
        "Annotated[Db, Inject('archive')] | None", Annotated[Db | None, "old ones", Inject("archive")],
    ])  # fmt: skip
    async def test_a_name_chooses_among_two_of_one_type(self, annotation: object, given: Provide) -> None:
        services: Mapping[ServiceKey, object] = {(Db, "archive"): Db("archive"), Db: DB}
        made = asking(annotation).bound(services.keys())
        assert (await made.call({"label": 1}, given(services))).content == "1 archive"

    @pytest.mark.parametrize(("annotation", "services", "text"), [
        (Annotated[str, Inject("key")], {(str, "key"): "sesame"}, "1 sesame"),  # a name also chooses a plain value
        (Cache | Db, {FakeDb: FAKE, OtherDb: DB, Cache: CACHE}, "1 cache"),  # exact, before a subclass of another
        (Db, {FakeDb: FAKE, Db: DB}, "1 db"),
        *((one, {FakeDb: FAKE, Cache: CACHE}, "1 fake") for one in (Db, FakeDb | Db, Db | None)),  # the only subclass
    ])  # fmt: skip
    async def test_which_service_is_meant(
        self, annotation: object, services: Mapping[ServiceKey, object], text: str, given: Provide
    ) -> None:
        made = asking(annotation).bound(services.keys())
        assert names(made) == ["label"]
        assert (await made.call({"label": 1}, given(services))).content == text

    async def test_methods_partials_and_callable_objects_ask_too(self, given: Provide) -> None:
        class Shop:
            async def price(self, item: str, db: Db, tax: float = 0.1) -> str:
                return f"{item} {db.name} {tax}"

            def __call__(self, item: str, db: Db) -> str:
                return f"{item} {db.name}"

        shop = Shop()
        for made, text in (
            (tool(shop.price), "tea db 0.1"),
            (tool(functools.partial(shop.price, tax=0.2)), "tea db 0.2"),
            (tool(shop, name="shop"), "tea db"),
        ):
            bound = cast("FunctionTool[..., object]", made).bound({Db})
            assert "db" not in names(bound)
            assert (await bound.call({"item": "tea"}, given({Db: DB}))).content == text

    async def test_services_and_the_context_come_together(self, given: Provide) -> None:
        @tool
        async def both(x: int, db: Db, ctx: ToolCallContext, cache: Cache | None = None) -> str:
            return f"{x} {db.name} {ctx.call_id} {cache and cache.name}"

        made = both.bound({Db, Cache})
        assert made.spec.injected == ("db", "ctx", "cache")
        assert (await made.call({"x": 1}, given({Db: DB, Cache: CACHE}))).content == "1 db call cache"

    @each("annotation", [object, Any, dict, "dict[str, int]", list[int], Settings, Point, str | None])
    def test_what_a_model_fills_stays_the_models(self, annotation: object) -> None:
        class Everything(dict[str, Any]):  # Any: it is never filled
            pass

        assert names(asking(annotation).bound({Everything, Db})) == ["label", "db"]


class TestOptional:
    @pytest.mark.parametrize("annotation", [
        Db | None, "Optional[Db]", "Annotated[Db, Inject('archive')] | None", Annotated[Db | None, "why"],
    ])  # fmt: skip
    async def test_one_that_is_not_registered_is_none(self, annotation: object, context: ToolCallContext) -> None:
        for services in (frozenset[ServiceKey](), frozenset[ServiceKey]({Cache})):
            made = asking(annotation).bound(services)
            assert (names(made), made.spec.injected) == (["label"], ("db",))
            assert (await made.call({"label": 1, "db": "forged"}, context)).content == "1 None"

    @pytest.mark.parametrize("annotation", [Db, "Db | None", Annotated[Db, Inject("archive")]])
    async def test_or_its_default(self, annotation: object, context: ToolCallContext) -> None:
        made = asking(annotation, default=Db("mine")).bound({Cache})
        assert (names(made), made.spec.injected) == (["label"], ("db",))
        assert "required" in made.spec.parameters
        assert (await made.call({"label": 1, "db": "forged"}, context)).content == "1 mine"


class TestBinding:
    @each(("annotation", "known", "why"), [
        (Db, set[ServiceKey](), "services"), (Db, {Cache}, "services"), (list[Db], {Db}, "holds the service Db"),
        ("dict[str, Db]", {Db}, "holds the service Db"), (list[Db] | None, {Db}, "holds the service Db"),
        (tuple[int, dict[str, list[Db | None]]], {Db}, "holds the service Db"),
        (Callable[[Db], int], {Db}, "holds the service Db"),
        (list[Settings], {Settings}, "holds the service Settings"), (list[Db], {FakeDb}, "holds the service FakeDb"),
        (list[Annotated[Db, Inject("a")]], {(Db, "a")}, r"holds the service \(Db, 'a'\)"),
        (list[Store], {Db}, "holds the service Db"), (Tree, {Db}, "holds the service Db"),
        (Many[Db], {Db}, "holds the service Db"), (Db, {FakeDb, OtherDb}, "FakeDb or OtherDb"),
        (Db | Cache, {Db, Cache}, "Cache or Db"), (Db | None, {(Db, "a"), (Db, "b")}, "Inject"),
        (Annotated[Db, Inject("c")], {Db, (Db, "b")}, r"\(Db, 'c'\)"),
        (Annotated[Db, Inject("a")], {(FakeDb, "a"), (OtherDb, "a")}, "annotate"),
        (Annotated[str, Inject("key")], {Db}, r"\(str, 'key'\)"), ("Elsewhere", {Db}, "Elsewhere"),
    ])  # fmt: skip
    def test_what_cannot_be_given_is_named(self, annotation: object, known: set[ServiceKey], why: str) -> None:
        with pytest.raises(UsageError, match=f"tool 'count', parameter 'db'.*{why}"):
            asking(annotation).bound(known)

    def test_an_optional_one_may_not_be_unclear_either_nor_what_is_no_class_be_hidden(self) -> None:
        for annotation, known in ((Db | None, {FakeDb, OtherDb}), (list[Db] | None, {Cache})):
            with pytest.raises(UsageError, match="parameter 'db'"):
                asking(annotation, default=None).bound(known)

    def test_binding_leaves_the_tool_as_it_was(self) -> None:
        made, plain = asking(Settings), asking(int)
        for bound, shown in ((made, ["label", "db"]), (made.bound({Settings}), ["label"]), (made, ["label", "db"])):
            assert names(bound) == shown
        assert plain.bound({Db}) is plain

    def test_an_inject_without_name_is_refused(self) -> None:
        with pytest.raises(UsageError, match="name"):
            Inject("")


class TestHidden:
    async def test_errors_of_arguments_do_not_show_it(self, given: Provide) -> None:
        @tool
        def take(point: Point, db: Db) -> None: ...

        result = await take.bound({Db}).call({"point": {"x": "no"}}, given({Db: DB}))
        assert result.is_error
        assert "hunter2" not in result.content

    def test_neither_spec_nor_context_tells_of_it(self, given: Provide) -> None:
        made = asking(Db, default=DB).bound({Db})
        assert "hunter2" not in repr((made.spec, made, given({Db: DB})))
        absent = asking(Db, default=DB).bound({Cache})
        assert "hunter2" not in repr((absent.spec, absent))

    async def test_a_call_outside_a_run_says_so(self, context: ToolCallContext) -> None:
        result = await asking(Db).bound({Db}).call({"label": 1}, context)
        assert (result.kind, "not part of a run" in result.content) == ("error", True)


class TestProbe:
    async def test_it_asks_for_services_by_type_and_by_the_names_of_the_tool(self, given: Provide) -> None:
        async def by_type(number: str, store: Db) -> str:
            return f"{number} {store.name}"

        def send(number: str, db: Db) -> None: ...

        by_name = cast("Callable[..., object]", lambda number, db: f"{number} {db.name}")  # type: ignore[misc]  # no types: the case
        for probe in (by_type, by_name):
            made = tool(send, probe=probe).bound({Db})
            assert await made.probe({"number": "m1"}, given({Db: DB})) == ToolResult("m1 db")

    async def test_it_gets_what_the_tool_took_where_the_model_sent_nothing(self, context: ToolCallContext) -> None:
        mine = Cache()

        def pay(amount: int, currency: str = "EUR", mine: Annotated[Cache | None, Inject("c")] = mine) -> None: ...
        def taken(amount: int, currency: str, cache: Annotated[Cache, Inject("d")] | None) -> str:
            return f"{amount} {currency} {cache}"

        def of_both(currency: str = "CHF", cache: Annotated[Cache | None, Inject("d")] = CACHE) -> str:
            return f"{currency} {cache and cache.name}"

        def absent(mine: Annotated[Cache | None, Inject("c")]) -> str:
            return str(mine)

        probes: list[tuple[Callable[..., str], dict[str, object], str]] = [
            (taken, {}, "5 EUR None"), (taken, {"currency": "USD"}, "5 USD None"),
            (of_both, {}, "EUR cache"),  # of a default of its own and the tool's, the tool's counts
            (absent, {}, str(mine)),
        ]  # fmt: skip
        for probe, sent, told in probes:
            assert await tool(pay, probe=probe).probe({"amount": 5, **sent}, context) == ToolResult(told)

    def test_its_services_are_checked_too(self) -> None:
        def ask(store: Annotated[Db, Inject("archive")]) -> None: ...

        with pytest.raises(UsageError, match=r"probe of send.*'store'"):
            tool(lambda: None, name="send", probe=ask).bound({Db})

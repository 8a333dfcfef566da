"""What a person writes about calls: rules, which tighten or always allow one thing, and what a tool is declared to be.

Source: spec/guard.md, sections 4.3, 4.9 and 4.10.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Literal, cast, get_args

from surefoot.types.dataclass import dataclass, field, fields, replace
from surefoot.types.errors import ConfigError
from surefoot.types.settings import (
    Settings,
    all_of,
    choice,
    fits,
    flag,
    from_table,
    is_number,
    mapping,
    mapping_of,
    of_type,
    or_none,
    row,
    seconds,
    setting,
    text,
    texts,
    tuple_of,
    whole,
)
from surefoot.types.tools import Approval, Effect, ToolSpec

Role = Literal["destination", "object", "amount", "secret", "time", "content", "selector", "option"]
"""What a leaf of a call's arguments is to the effect (spec/guard.md, section 4.3)."""

ValueKind = Literal["email", "url", "account", "phone", "key", "encoded", "number", "date", "text"]
"""What a value looks like, whatever its parameter is called (section 4.5)."""

Origin = Literal["user", "config", "declared", "derived", "untrusted", "relayed", "invented"]
"""Where a leaf comes from; the first four are good (section 4.6)."""

StepKind = Literal["tool", "agent", "reasoning", "response", "skip"]

Value = str | int | float | bool

LONGEST_STANDING_DAYS = 90

COVERED = ("intent", "provenance", "touch", "foreign", "repetition", "conformance")
"""Rules whose question a standing rule may answer."""

_A_VALUE = "give a text, a number, true or false"

_name = fits(lambda given: isinstance(given, str) and bool(given.strip()), "give a text")
_number = or_none(fits(is_number, "give a number"), "any")
_any_text, _any_name = or_none(text, "any"), or_none(_name, "any")
_tool = fits(
    lambda given: isinstance(given, str) and bool(given.strip()) and not set("*?") & set(given),
    "name exactly one tool; what is always allowed takes no patterns",
)
_covers = tuple_of(lambda one: one in COVERED, f"name what it answers: {', '.join(COVERED)}", least=1)
_then = fits(lambda given: given in ("deny", "ask"), "choose deny or ask; a rule cannot allow")
_origins = tuple_of(lambda one: one in get_args(Origin), f"choose of {', '.join(get_args(Origin))}")
_pin = fits(lambda given: bool(re.fullmatch("[0-9a-f]{64}", str(given))), "give the 64 hex digits of the tool's pin")


def _is_value(given: object) -> bool:
    return isinstance(given, str | int | float)


def _is_day(given: object) -> bool:
    try:
        return isinstance(given, str) and bool(date.fromisoformat(given))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class ValueTest(Settings):
    """What is asked of a value of a call's arguments: of parameter `arg`, at any depth, or of a role, or of both.

    All that is given has to hold of one value: `equals` it or `in_` a list, in the normal form of its kind; `matches`
    and `not_matches` a pattern in which `*` is any text and `?` one character; `above` and `below` a number; `origin`,
    where it comes from, is one of these. With none of these it is enough that such a value is there.
    """

    arg: str | None = setting(None, _any_text, "")
    role: Role | None = setting(None, or_none(choice(*get_args(Role)), "any"), "")
    equals: Value | None = setting(None, or_none(fits(_is_value, _A_VALUE), "any"), "")
    in_: tuple[Value, ...] = setting((), tuple_of(_is_value, _A_VALUE), "")
    matches: str | None = setting(None, _any_text, "")
    not_matches: str | None = setting(None, _any_text, "")
    above: float | None = setting(None, _number, "")
    below: float | None = setting(None, _number, "")
    origin: tuple[Origin, ...] = setting((), _origins, "")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if not self.arg and self.role is None:
            raise ConfigError("arg", self.arg, "name the parameter, or give a role")


@dataclass(frozen=True, slots=True)
class When(Settings):
    """The calls that a rule is about: all that is given has to hold. `tool` may hold `*` and `?`.

    `count_above` holds from the call on that is one more than so many of this run, counted by tool and effect.
    """

    tool: str | None = setting(None, _any_name, "")
    effect: Effect | None = setting(None, or_none(choice(*get_args(Effect)), "any"), "")
    server: str | None = setting(None, _any_name, "")
    step_kind: StepKind | None = setting(None, or_none(choice(*get_args(StepKind)), "any"), "")
    value: ValueTest | None = setting(None, or_none(of_type(ValueTest), "any"), "")
    count_above: int | None = setting(None, or_none(whole(0), "any"), "")


@dataclass(frozen=True, slots=True)
class Rule(Settings):
    """A rule of a person. It only tightens: there is no "allow", and what no rule objects to is left to the others."""

    id: str = field(metadata=row(_name))
    when: When = field(metadata=row(of_type(When)))
    then: Literal["deny", "ask"] = field(metadata=row(_then))
    reason: str = setting("", text, "")


@dataclass(frozen=True, slots=True)
class StandingRule(Settings):
    """What a person always allows: exactly this tool under exactly this pin (64 hex digits), while all of `when` holds.

    It answers the questions of the rules in `covers`, until the day `expires_at` (ISO) and never for more than 90 days
    ahead. It is checked when it is used. `by` is who says so.
    """

    id: str = field(metadata=row(_name))
    tool: str = field(metadata=row(_tool))
    pin: str = field(metadata=row(_pin))
    by: str = field(metadata=row(_name))
    expires_at: str = field(metadata=row(fits(_is_day, "give a day as 2027-01-31")))
    covers: tuple[str, ...] = field(metadata=row(_covers))
    when: tuple[ValueTest, ...] = setting((), all_of(ValueTest), "")

    def holds_on(self, today: str) -> bool:
        """Whether it holds on a day in ISO form: not past its end, nor more than 90 days before; "" is never."""
        try:
            left = (date.fromisoformat(self.expires_at) - date.fromisoformat(today[:_DAY_CHARS])).days
        except ValueError:
            return False
        return 0 <= left <= LONGEST_STANDING_DAYS


_DAY_CHARS = 10

Table = Mapping[str, object]
_LEAF_KEYS = ("arg", "role", "equals", "in", "matches", "not_matches", "above", "below", "origin")


def rule_from(table: Table) -> Rule:
    """A rule of a table as TOML gives it. Raises `ConfigError` for an unknown key, operator or value."""
    given = _take(table, ("id", "when", "then", "reason"), needed=("id", "when", "then"))
    when = _table("when", given.pop("when"))
    about = _take(when, ("tool", "effect", "server", "step_kind", "count_above", *_LEAF_KEYS))
    leaf = {key: about.pop(key) for key in _LEAF_KEYS if key in about}
    if not when:
        raise ConfigError("when", when, "say what the rule is about")
    value = value_test_from(leaf) if leaf else None
    return Rule(when=When(**about, value=value), **given)  # pyright: ignore[reportArgumentType]  # they check


def standing_from(table: Table) -> StandingRule:
    """A standing rule of a table as TOML gives it; `when` is a list of tables. Raises as `rule_from`."""
    names = tuple(one.name for one in fields(StandingRule))
    given = _take(table, names, needed=names[:-1])
    given["covers"] = _texts("covers", given["covers"])
    tests = given.get("when", ())
    if not isinstance(tests, list | tuple):
        raise ConfigError("when", tests, "give a list of tables")
    given["when"] = tuple(value_test_from(_table("when", one)) for one in cast("list[object]", tests))
    if isinstance(given["expires_at"], date):  # TOML has days of its own
        given["expires_at"] = given["expires_at"].isoformat()
    return StandingRule(**given)  # pyright: ignore[reportArgumentType]  # it checks


def value_test_from(table: Table) -> ValueTest:
    """A test of a table as TOML gives it: `in` for `in_`; `origin` may be one text. Raises as `rule_from`."""
    given = _take(table, _LEAF_KEYS)
    if "in" in given:
        listed = given.pop("in")
        values = cast("list[object]", listed) if isinstance(listed, list) else []
        if not values or not all(map(_is_value, values)):
            raise ConfigError("in", values, "give a list of texts, numbers, true or false")
        given["in_"] = tuple(values)
    if "origin" in given:
        given["origin"] = _texts("origin", given["origin"])
    return ValueTest(**given)  # pyright: ignore[reportArgumentType]  # it checks


def _take(table: Table, keys: tuple[str, ...], needed: tuple[str, ...] = ()) -> dict[str, object]:
    for key in table:
        if key not in keys:
            raise ConfigError(key, table[key], f"unknown key; the keys are {', '.join(keys)}")
    for key in needed:
        if key not in table:
            raise ConfigError(key, None, "it is missing")
    return dict(table)


def _table(name: str, value: object) -> Table:
    if not isinstance(value, Mapping):
        raise ConfigError(name, value, "give a table")
    return cast("Table", value)  # the keys of a TOML table are text


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    values = cast("list[object]", value) if isinstance(value, list) else []
    texts = tuple(one for one in values if isinstance(one, str))
    if not texts or len(texts) != len(values):
        raise ConfigError(name, values, "give a text or a list of texts")
    return texts


def texts_by_name(name: str, value: object) -> Mapping[str, str]:
    """A copy, so that nobody changes what is in use. No message shows a value."""
    given = cast("Mapping[object, object]", value) if isinstance(value, Mapping) else {0: 0}
    if not all(isinstance(each, str) for pair in given.items() for each in pair):
        raise ConfigError(name, "(not shown)", "give a table of texts")
    return cast("Mapping[str, str]", dict(given))  # as just seen


@dataclass(frozen=True, slots=True)
class Declared(Settings):
    """What the developer declares about one tool. With `effect` None it counts as a write.

    The fields are those of `ToolSpec`; the roles of its parameters and what else the gate reads are kept as given.
    Raises `ConfigError`. Source: spec/guard.md, section 4.3.
    """

    effect: Effect | None = setting(None, or_none(choice(*get_args(Effect)), "undeclared"), "")
    egress: bool | None = setting(None, or_none(flag, "the tool's own"), "")
    idempotent: bool | None = setting(None, or_none(flag, "the tool's own"), "")
    private: bool | None = setting(None, or_none(flag, "the tool's own"), "")
    verified: bool | None = setting(None, or_none(flag, "the tool's own"), "")
    polling: bool | None = setting(None, or_none(flag, "the tool's own"), "")
    timeout_s: float | None = setting(None, or_none(seconds, "the default"), "")
    roles: Mapping[str, str] = setting(dict[str, str], texts_by_name, "")
    sensitive: tuple[str, ...] = setting((), texts, "")
    trusted_fields: tuple[str, ...] = setting((), texts, "")
    directory: bool | None = setting(None, or_none(flag, "by its name"), "")
    identity: tuple[str, ...] = setting((), texts, "")
    approval: Approval | None = setting(None, or_none(choice(*get_args(Approval)), "no approval"), "")
    queue: str = setting("", text, "")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if unknown := sorted(set(self.roles.values()) - set(get_args(Role))):
            raise ConfigError("roles", unknown, f"choose from {', '.join(get_args(Role))}")

    def of(self, spec: ToolSpec) -> ToolSpec:
        """The tool as it is declared. What is left out stays as the tool's own code has it."""
        said = {name: value for name, usual in _USUAL.items() if (value := getattr(self, name)) != usual}
        more: dict[str, bool] = {}
        if "effect" in said and "read" in (said["effect"], spec.effect):  # what is no read may not be repeated as one
            more = {"idempotent": said["effect"] == "read"}
        return replace(spec, **{**more, **said}, declared=spec.declared or self.effect is not None)


def as_declared(spec: ToolSpec, declared: Mapping[str, Declared]) -> ToolSpec:
    """The tool with what is declared of its name, if anything is."""
    return declared[spec.name].of(spec) if spec.name in declared else spec


_USUAL = {name: getattr(Declared(), name) for name in Declared.__dataclass_fields__}


def declarations(table: object) -> dict[str, Declared]:
    """The declarations of a table by tool. Raises `ConfigError` that names the tool and the field."""
    mapping("tools", table)
    made: dict[str, Declared] = {}
    for name, said in cast("Mapping[str, object]", table).items():  # the keys of JSON and TOML are text
        try:
            made[name] = from_table(Declared, said)
        except ConfigError as error:
            at = "" if error.field == Declared.__name__ else f".{error.field}"
            raise ConfigError(f"tools.{name}{at}", error.value, error.message) from None
    return made


by_name = mapping_of(lambda name, value: of_type(Declared)(f"tools.{name}", value), "give a table of tools")
"""The check of a setting that declares tools by their names."""

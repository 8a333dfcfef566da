"""`arithmetic`: a calculation worked out exactly, without running code.

Fractions are exact, so that tenths add up; functions such as `sin` give floating-point numbers, and what such a number
touches becomes one. Every size is bounded before it is worked out.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce

from surefoot.tools.call import ToolFailed
from surefoot.tools.function import tool
from surefoot.types.ports import Tool

MAX_CHARS = 1_000
MAX_BITS = 10_000  # of numerator and denominator: some 3,000 digits
SHOWN_DIGITS = 15  # significant digits of a result that has no end

Number = Fraction | float
_Function = Callable[[Sequence[Number]], Number]

_SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "\u00a0": " ", "^": "**"})
_IN_CALL = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?!\d)")
_GROUPS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_TIMES = re.compile(r"(?<=[\d)])(?:\s+|(?<!(?<![\d.])0))[xX]\s*(?=[\d(])")  # 0x10 is no product
_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}


class _Wrong(Exception):
    """What is wrong with an expression, as a sentence for the model."""


def arithmetic_tool() -> Tool:
    """The tool `arithmetic`."""

    @tool(effect="read", name="arithmetic")
    async def arithmetic(expression: str) -> str:
        """Work out a calculation exactly.

        Args:
            expression: Numbers with + - * / // % ** and brackets; also sqrt, abs, round, min, max, sum, mean, floor,
                ceil, factorial, gcd, lcm, log, exp and the trigonometric functions, pi and e.
        """
        return calculate(expression)

    return arithmetic


def calculate(expression: str) -> str:
    """The value of an expression as text. Raises `ToolFailed`; takes at most some tens of milliseconds."""
    if len(expression) > MAX_CHARS:
        raise ToolFailed("The expression is too long. Work it out in parts.")
    text = " ".join(expression.translate(_SIGNS).split()).removesuffix("?").rstrip().removesuffix("=").rstrip()
    if not re.search(r"[A-Za-z_]\s*\(", text):  # between the arguments of a function a comma is a comma
        text = _GROUPS.sub(lambda group: group[0].replace(",", ""), text)
    elif (group := _IN_CALL.search(text)) and (", " in text or ",0" in group[0]):
        whole = group[0].replace(",", "")
        raise ToolFailed(f"{group[0]} may be one number or several. Write {whole}, or put a space after each comma.")
    text = _TIMES.sub(" * ", text)
    if odd := next((each for each in text if not each.isascii()), ""):
        raise ToolFailed(f"The expression cannot be worked out: it holds {odd!r}. Write it with ASCII signs.")
    try:
        return _show(_value(ast.parse(text, mode="eval").body, text))
    except _Wrong as error:
        why = str(error)
    except ZeroDivisionError:
        why = "it divides by zero"
    except OverflowError:
        why = "a number in it is too large"
    except (RecursionError, MemoryError):
        why = "it is nested too deeply"
    except (SyntaxError, ValueError):
        raise ToolFailed("The expression cannot be read. Give only numbers, signs, brackets and functions.") from None
    raise ToolFailed(f"The expression cannot be worked out: {why}.")


def _value(node: ast.expr, text: str) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if isinstance(value, int):
                return _bounded(Fraction(value))
            written = text[node.col_offset : node.end_col_offset].replace("_", "")  # a float would lose exact tenths
            exponent = re.search(r"[eE]([+-]?\d+)$", written)
            if exponent and abs(int(exponent[1])) > MAX_CHARS:
                raise _Wrong("a number in it is too large or too small")
            return _bounded(Fraction(written))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text)
        case ast.BinOp(left=left, op=op, right=right):
            if (work := _OPERATORS.get(type(op))) is None:
                raise _Wrong("only + - * / // % and ** can be used")
            return _bounded(work(_value(left, text), _value(right, text)))
        case ast.Name(id=name) if name.lower() in _CONSTANTS:
            return _CONSTANTS[name.lower()]
        case ast.Name(id=name):
            raise _Wrong(f"{name} is not a known number")
        case ast.Call(func=ast.Name(id=name), args=[ast.List(elts=members) | ast.Tuple(elts=members)], keywords=[]):
            return _applied(name.lower(), [_value(each, text) for each in members])
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _applied(name.lower(), [_value(each, text) for each in arguments])
        case _:
            raise _Wrong("only numbers, signs, brackets and functions can stand in it")


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent == Fraction(1, 2):
            return _root(base)
        if exponent.denominator == 1:
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits > 1 and bits * abs(exponent.numerator) > MAX_BITS + bits:
                raise _Wrong("the power is too large")
            return base**exponent.numerator if bits > 1 or base != -1 else Fraction((-1) ** (exponent.numerator % 2))
    return _real(lambda: float(base) ** float(exponent))


def _root(value: Number) -> Number:
    if isinstance(value, Fraction) and value >= 0:
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return _real(lambda: math.sqrt(value))


def _real(work: Callable[[], float | complex]) -> float:
    try:
        value = work()
    except ValueError:
        raise _Wrong("a function in it has no value there") from None
    if isinstance(value, complex):
        raise _Wrong("the root of a negative number is not a real number")
    return value


def _applied(name: str, values: list[Number]) -> Number:
    if (known := _FUNCTIONS.get(name)) is None:
        raise _Wrong(f"{name} is not a known function")
    least, most, function = known
    if not least <= len(values) <= most:
        raise _Wrong(f"{name} does not take {len(values)} numbers")
    return _bounded(function(values))


def _floating(function: Callable[[float], float]) -> tuple[int, int, _Function]:
    return 1, 1, lambda values: _real(lambda: function(float(values[0])))


def _rounded(values: Sequence[Number]) -> Number:
    """Halves go away from zero, as at school."""
    digits = _whole(values[1]) if len(values) > 1 else 0
    if abs(digits) > 100:  # noqa: PLR2004  # more digits than anything here has use for
        raise _Wrong("round takes fewer digits")
    scaled = Fraction(values[0]) * Fraction(10) ** digits
    nearest = math.floor(abs(scaled) + Fraction(1, 2))
    return Fraction(nearest if scaled >= 0 else -nearest) / Fraction(10) ** digits


def _whole(value: Number) -> int:
    if value != int(value):
        raise _Wrong("a whole number is wanted where there is none")
    return int(value)


def _factorial(values: Sequence[Number]) -> Number:
    if not 0 <= values[0] <= 1000:  # noqa: PLR2004  # 2,568 digits
        raise _Wrong("the factorial is of a negative or too large number")
    return Fraction(math.factorial(_whole(values[0])))


_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: lambda left, right: left % right,
    ast.Pow: _power,
}


def _one_by_one(work: Callable[[Number, Number], Number], start: Fraction) -> _Function:
    return lambda values: reduce(lambda one, other: _bounded(work(one, other)), values, start)


_MANY = MAX_CHARS
_SUM = _one_by_one(lambda one, other: one + other, Fraction(0))
_FUNCTIONS: Mapping[str, tuple[int, int, _Function]] = {  # the fewest and the most numbers that each takes
    "sqrt": (1, 1, lambda values: _root(values[0])),
    "abs": (1, 1, lambda values: abs(values[0])),
    "round": (1, 2, _rounded),
    "floor": (1, 1, lambda values: Fraction(math.floor(values[0]))),
    "ceil": (1, 1, lambda values: Fraction(math.ceil(values[0]))),
    "min": (1, _MANY, min),
    "max": (1, _MANY, max),
    "sum": (0, _MANY, _SUM),
    "mean": (1, _MANY, lambda values: _SUM(values) / len(values)),
    "pow": (2, 2, lambda values: _power(values[0], values[1])),
    "factorial": (1, 1, _factorial),
    "gcd": (1, _MANY, lambda values: Fraction(math.gcd(*map(_whole, values)))),
    "lcm": (1, _MANY, _one_by_one(lambda one, other: Fraction(math.lcm(_whole(one), _whole(other))), Fraction(1))),
    "log": (1, 2, lambda values: _real(lambda: math.log(*map(float, values)))),
    "ln": _floating(math.log),
    "log2": _floating(math.log2),
    "log10": _floating(math.log10),
    "exp": _floating(math.exp),
    **{
        name: _floating(getattr(math, name))
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "degrees", "radians")
    },
}


def _bounded(value: Number) -> Number:
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise _Wrong("a number in it becomes too large")
    return value


def _show(value: Number) -> str:
    """Whole numbers and decimals that end in full, all else rounded."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _Wrong("the result is too large")
        return f"{value:.{SHOWN_DIGITS}g}"
    if value.denominator == 1:
        return str(value.numerator)
    context = Context(prec=SHOWN_DIGITS)
    rest, digits = value.denominator, 0
    while rest % 10 == 0 or rest % 5 == 0 or rest % 2 == 0:
        rest //= 10 if rest % 10 == 0 else 5 if rest % 5 == 0 else 2
        digits += 1
    if rest == 1 and digits <= 30:  # noqa: PLR2004  # longer ones read no better than rounded ones
        whole = value.numerator * 10**digits // value.denominator
        return f"{Decimal(whole).scaleb(-digits, Context(prec=MAX_BITS)):f}"
    return f"{context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context):g}"

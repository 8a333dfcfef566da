"""What values are: the kind of a leaf, its normal form, and the values that stand out of a running text.

Rewriting, encoding or splitting a value never makes it another's. Source: spec/guard.md, section 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from string import ascii_uppercase

from surefoot.core.text.look import folded, normal_text, without_format
from surefoot.core.text.numerals import number, readings
from surefoot.core.text.words import dates_in, late, table
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.rules import ValueKind

MOST_TOKENS = 5_000
"""Hard tokens that are taken of one text; what has more is not a text that a value is looked up in."""

LONGEST_TOKEN = 2_048
LONGEST_ACCOUNT, MOST_GROUPS = 42, 8
"""Of an account that has letters in it: 34 characters in groups of four, and the spaces between them."""

_REST = r"[^\s<>\"'`{}|\\^\[\]，。；、！？）》」』】]"
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LETTER = rf"[^\W{_WIDE}]"
"""A letter, digit or underscore of a script that has spaces; one of the others beside a value is no part of it."""

_SCHEME = late(r"([A-Za-z][A-Za-z0-9+.-]*)://|((?i:https?|ftp|wss?)):[/\\]{0,3}|[/\\]{2}")
_SCHEMED = late(
    r"(?:[a-z][a-z0-9+.-]{1,15}://|(?:https?|ftp|wss?):[/\\]{0,3}(?=[\w\[])|[/\\]{2}(?=[\w-]+\.[\w.-]*[a-z]|\[[\da-f:]+\])|www\.)"
    rf"{_REST}{{1,2048}}|(?:data:[\w.+-]*/[\w.+-]*[;,]|javascript:)\S{{1,2048}}",
    re.IGNORECASE,
)
_BARE = late(
    rf"(?<!{_LETTER})(?<![@./%+-])(?:"
    rf"(?:[\w-]{{1,63}}\.){{1,8}}[a-z]{{2,24}}(?!{_LETTER})(?![@-])(?::\d{{1,5}})?(?:/{_REST}{{0,1000}})?"
    rf"|(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?::\d{{1,5}})?/{_REST}{{0,1000}})",
    re.IGNORECASE,
)
_EMAIL = late(
    rf"(?<!{_LETTER})(?<![.%+@-])(?:{_LETTER}|[.%+-]){{1,64}}@(?:[\w-]{{1,63}}\.){{1,8}}"
    rf"(?:(?:{_LETTER}|-){{2,24}}(?!{_LETTER}|-)|[{_WIDE}]{{2,24}}(?![\w-]))"
)
_IBAN = late(
    r"(?<!\w)[A-Za-z]{2}\d{2}(?:[A-Za-z0-9]{8,30}"
    r"|[ .-][A-Za-z0-9]{4}(?:[ .-](?=[A-Za-z]{0,3}\d)[A-Za-z0-9]{1,4}){1,7})(?!\w)",
    re.ASCII,
)
_DIGITS = late(
    r"(?<![\w.,])\+?\(?(?:[0-9](?:[ ()-]{0,2}[0-9]){6,24}(?!\.\d)"
    r"|(?!(?:\d{1,3}\.){3}\d{1,3}(?![.\d]))\d{2,4}(?:\.\d{2,4}){2,9}(?!\.?\d))(?![\w元块万亿美欧日英])",
    re.ASCII,
)
_IPV4 = late(r"(?:\d{1,3}\.){3}\d{1,3}[:/]", re.ASCII)
_KEY = late(r"(?<![\w/.@-])(?=[\w-]*[A-Za-z])(?=(?:[\w-]*?\d){2})[A-Za-z0-9][\w-]{7,127}(?![\w@])", re.ASCII)
_RUN = late(r"(?<![A-Za-z0-9+/=_%-])(?:[A-Za-z0-9+/_-]{24,2048}={0,2}|(?:%[0-9A-Fa-f]{2}){8,600})(?![A-Za-z0-9+/=_%-])")
_CLOCK = late(r"(?<!\d)\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?!\d)")
_NUMBER = late(
    r"(?<![A-Za-z0-9_.])[-+]?(?:[$€£¥]\s?)?(\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?"
    r"|(?:\d+|\d{1,3}(?:\.\d{3})+),\d{1,2}(?![\d,])|\d{1,3}(?:\.\d{3}){2,}(?![.\d])|\d+(?:\.\d+)?)"
    r"(?:\s?({number_scale})(?=[元块]|(?i:usd|eur|gbp|cny|jpy|chf)\b|(?!\w)|[\u3400-\u9fff])"
    r"|(?=%?(?!\w)|[元块个张份位件次台本欧美英日]|(?-i:[A-Z]{3})\b))",
    re.IGNORECASE,
)
_DECIMAL_COMMA = late(r"\d+,\d{1,2}")
_SPELLED = late("{spelled_number}", re.IGNORECASE)
_LIST_NUMBER = late(r"(?m)^[ \t]*\d{1,3}[.)](?=\s)")
_WHOLE_NUMBER = late(
    r"[-+]?(?:[$€£¥]\s?)?(?:\d{1,3}(?:[,']\d{3})+|\d+)(?:\.\d+)?(?:\s?(?:{number_scale}))?(?:\s?(?:[$€£¥元块]|[A-Za-z]{3}))?",
    re.IGNORECASE,
)
_WHOLE_DATE = late(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_RUN_OF_DIGITS = late(r"\d+")
_NAMED = late(r"[a-z][a-z0-9+.-]*:|www\.|[/\\]{2}", re.IGNORECASE)
_STARTS = late(
    r"http:(?!//)|https:(?!//)|ftp:(?!//)|ws:(?!//)|wss:(?!//)|data:(?!//)|javascript:(?!//)|//(?<!://)|\\\\(?<!:\\\\)|www\."
)
"""In lower case, and each of one first letter: so it is skipped to, and not tried everywhere."""
_SCHEME_BEGINS = late(r"[a-z][a-z0-9+.-]*\Z", re.IGNORECASE | re.ASCII)
_SMALL = {ord(letter): letter.lower() for letter in ascii_uppercase}
_IS_WIDE = late(f"[{_WIDE}]")
_IS_WORD = late(r"[^\W\d_](?:[^\W\d_]| (?! )|'|, ){0,22}")
"""Words without a digit and without a sign that any kind needs, so short that they are no encoded run."""
_CLOSING = ".,;:!?'\")*_~"


@dataclass(frozen=True, slots=True)
class Token:
    """A value that stands out of a running text: its kind, as written, its normal form, and where it stands."""

    kind: ValueKind
    text: str
    norm: str
    start: int
    end: int


def kind_of(value: object) -> ValueKind:
    """What a leaf looks like as a whole."""
    if isinstance(value, bool) or value is None:
        return "text"
    if isinstance(value, int | float):
        return "number"
    text = str(value).strip()
    if not 0 < len(text) <= LONGEST_TOKEN or _IS_WORD.fullmatch(text):
        return "text"
    if len(text) > LONGEST_ACCOUNT and text.count(" ") > MOST_GROUPS and any(c.isalpha() for c in text):
        return "text"
    if _WHOLE_DATE.fullmatch(text):
        return "date"
    if _WHOLE_NUMBER.fullmatch(text) and sum(c.isdigit() for c in text) < 8:  # noqa: PLR2004  # as long as a phone
        return "number"
    bare = text.removeprefix("mailto:").strip("<>")
    tokens = hard_tokens(bare)
    if len(tokens) == 1 and tokens[0].start == 0 and tokens[0].end >= len(bare.rstrip(_CLOSING + "/")):
        return tokens[0].kind
    return "text"


def norm_of(value: object, kind: ValueKind | None = None) -> str:
    """The normal form of a leaf, with its kind before it, so that values of two kinds are never the same."""
    text = str(value).strip()
    match kind or kind_of(value):
        case "email":
            if text.isascii():
                return f"email:{normal_text(text).removeprefix('mailto:').strip('<>')}"
            # the domain in IDNA form; no dot or plus is folded
            local, _, host = text.strip().strip("\"'`“”‘’「」『』《》<> ").rpartition("@")
            return f"email:{normal_text(local).removeprefix('mailto:').strip('<')}@{_idna(_host(host))}"
        case "url":
            return f"url:{_url(text)}"
        case "account" | "phone":
            return "digits:" + re.sub(r"[\s().-]", "", folded(text)[0]).upper()
        case "key" | "encoded":
            return f"key:{text}"
        case "number":
            return f"number:{number(text)}"
        case "date":
            return f"date:{normal_text(text)}"
        case _:
            return "text:" + normal_text(text).removeprefix("./")


def _url(text: str) -> str:
    """A URL without http and https, `www.`, default port, fragment and root slash; host in lower case and IDNA form.

    Any other scheme stays, and a "://" that has none before it hides no host: "evil.example/://good.example".
    """
    scheme, rest = _split_scheme(_without_mark(text.strip()).partition("#")[0])
    host, slash, path = rest.partition("/")
    if not slash and "?" in host:
        host, mark, query = host.partition("?")
        path = mark + query
    elif path:
        path = "/" + path
    host = _host(host).removeprefix("www.")
    for port in (":80", ":443"):
        host = host.removesuffix(port)
    return scheme + _idna(host) + ("" if path == "/" else path)


def _split_scheme(bare: str) -> tuple[str, str]:
    """The scheme of a URL with its "://", "" for http, https and none, and what follows; no slash is needed there."""
    m = _SCHEME.match(bare)
    if m is None:
        return "", bare
    scheme = (m[1] or m[2] or "").casefold()
    return ("" if scheme in ("", "http", "https") else f"{scheme}://"), bare[m.end() :]


def _without_mark(text: str) -> str:
    while text and (text[-1] in ".,;:!?'\"*_~" or (text[-1] == ")" and text.count("(") < text.count(")"))):
        text = text[:-1]
    return text


def host_of(text: str) -> str:
    """The host of a URL in its normal form."""
    return re.split(r"[/?]", _split_scheme(_url(text))[1], maxsplit=1)[0].rpartition("@")[2].partition(":")[0]


def has_user_info(text: str) -> bool:
    """Whether a URL holds a name before its host, which makes it look like another's."""
    m = _SCHEME.match(text.strip())
    return m is not None and "@" in re.split(r"[/?#\\]", text.strip()[m.end() :], maxsplit=1)[0]


def _host(text: str) -> str:
    """A host in lower case, without format characters, with a dot for what is read as one; its letters stay."""
    return text.lower() if text.isascii() else without_format(text).lower().replace("。", ".")


def _idna(host: str) -> str:
    """A host in the form in which it is resolved; as it is where it has none.

    The letters that IDNA 2008 keeps and the codec of 2003 writes otherwise stay what they are (RFC 5894, section 7.2).
    """
    if host.isascii():
        return host
    try:
        return ".".join(
            f"xn--{label.encode('punycode').decode()}"
            if "ß" in label or "ς" in label
            else label.encode("idna").decode()
            for label in host.split(".")
        )
    except UnicodeError:
        return host


def numbers_of(text: str) -> tuple[str, ...]:
    """The exact numbers of a text; digits of dates, times, URLs, accounts and list marks are none."""
    spans = [(start, end) for _, start, end in dates_in(text)]
    spans += [m.span() for pattern in (_CLOCK, _LIST_NUMBER) for m in pattern.finditer(text)]
    spans += [(t.start, t.end) for t in hard_tokens(text)]
    blank = bytearray(len(text))
    for start, end in spans:
        blank[start:end] = b"\1" * (end - start)
    found: list[str] = []
    for m in _NUMBER.finditer(text):
        if not blank[m.start(1)]:
            scale = m[2] or ""
            found += [m[1]] if scale in ("m", "M") else []  # "5 m" are metres or millions
            found += m[1].split(",") if _DECIMAL_COMMA.fullmatch(m[1]) else []  # or two in a list
            found.append(m[1] + scale)
    found += (m[0] for m in _SPELLED.finditer(text) if not blank[m.start()])
    return tuple(one for text in found for one in readings(text))


def hard_tokens(text: str, *, is_content: bool = False) -> tuple[Token, ...]:
    """URLs, e-mail addresses, accounts, phones, key-like strings and encoded runs, in order, none inside another.

    Looks only around the signs that each kind must have, so that plain prose costs next to nothing. In a content that
    goes out (`is_content`) a host with a path is a URL whatever it ends in.
    """
    if _IS_WORD.fullmatch(text):
        return ()
    places: Sequence[int] = ()
    if not text.isascii():
        text, places = folded(text)
    found: list[Token] = []
    taken: bytearray | None = None
    days: bytearray | None = None
    for kind, starts, pattern in _KINDS:
        match = pattern.match
        for start in starts(text):
            if taken is not None and taken[start]:
                continue
            m = match(text, start)
            token = _token(kind, m.group(), start, is_content) if m else None
            if token is None:
                continue
            if taken is None or days is None:
                taken, days = bytearray(len(text)), bytearray(len(text))
                for _, first, end in dates_in(text):
                    days[first:end] = b"\1" * (end - first)
            is_address = kind in ("url", "email")  # a day in it does not make it another
            if any(taken[start : token.end]) or (not is_address and any(days[start : token.end])):
                continue
            taken[start : token.end] = b"\1" * (token.end - start)
            found.append(token)
            if len(found) >= MOST_TOKENS:
                break
    found.sort(key=lambda token: token.start)
    if places:
        return tuple(replace(token, start=places[token.start], end=places[token.end - 1] + 1) for token in found)
    return tuple(found)


@cache
def _endings() -> frozenset[str]:
    return frozenset(" ".join(map(str, table("hosts").values())).split())


def _token(kind: ValueKind, text: str, start: int, is_content: bool) -> Token | None:  # handed down
    """The token that a match is, cut to its end; None when on a second look it is none."""
    if kind == "url":
        text = _without_mark(text)
        is_named = _NAMED.match(text) or (text[0].isdigit() and _IPV4.match(text))
        is_named = is_named or (is_content and "/" in text)
        if host_of(text).rpartition(".")[2] not in _endings():
            rest = text.partition("://")[2] or text
            labels = rest.partition("/")[0].split(".")
            if len(labels) > 2 and labels[-2].casefold() in _endings() and labels[-1][:1].isupper():  # noqa: PLR2004
                text = text[: len(text) - len(rest)] + ".".join(labels[:-1])  # a sentence ran into it: "site.com.They"
            elif not is_named:
                return None
            if not host_of(text):
                return None
    elif kind == "email":
        text = text.rstrip(".-")
    elif kind in ("account", "phone"):
        digits = sum(c.isdigit() for c in text)
        if digits < 8:  # noqa: PLR2004  # a phone number has that many
            return None
        if kind == "phone" and digits > 11 and not text.startswith("+"):  # noqa: PLR2004  # longer is a card or an account
            kind = "account"
    return Token(kind, text, norm_of(text, kind), start, start + len(text))


def _before(sign: str, more: str, most: int) -> Callable[[str], Iterator[int]]:
    """Where words begin that hold a sign; before it they are of letters, digits and `more`, at most so many.

    A letter of a script without spaces belongs to them only where it stands right before the sign.
    """

    def starts(text: str) -> Iterator[int]:
        at, last = text.find(sign), 0
        while at >= 0:
            start = at
            is_wide = at > 0 and _IS_WIDE.match(text[at - 1]) is not None
            while start > last and at - start < most:
                before = text[start - 1]
                if not (before.isalnum() or before in more) or (not is_wide and _IS_WIDE.match(before)):
                    break
                start -= 1
            yield start
            last, at = at + 1, text.find(sign, at + 1)

    return starts


def _schemes(text: str) -> Iterator[int]:
    at = text.find("://")
    while at >= 0:
        if m := _SCHEME_BEGINS.search(text, max(0, at - 16), at):
            yield m.start()
        at = text.find("://", at + 1)
    lower = text.translate(_SMALL)
    yield from (m.start() for m in _STARTS.finditer(lower) if not text[m.start() - 1 : m.start()].isalpha())


def _words_with_digits(text: str) -> Iterator[int]:
    last = 0
    for run in _RUN_OF_DIGITS.finditer(text):
        start = run.start()
        while start > last and run.start() - start < 128 and (c := text[start - 1]).isascii():  # noqa: PLR2004  # the longest key
            if not (c.isalnum() or c in "_-"):
                break
            start -= 1
        yield start
        last = run.end()


def _numbers(text: str) -> Iterator[int]:
    for run in _RUN_OF_DIGITS.finditer(text):
        start = run.start()
        start -= text[start - 1 : start] == "("
        yield start - (text[start - 1 : start] == "+")


def _runs(text: str) -> Iterator[int]:
    if any(len(word) >= 24 for word in text.split()):  # noqa: PLR2004  # the shortest run
        yield from (m.start() for m in _RUN.finditer(text))


_KINDS: tuple[tuple[ValueKind, Callable[[str], Iterator[int]], re.Pattern[str]], ...] = (
    ("url", _schemes, _SCHEMED),
    ("email", _before("@", "._%+-", 64), _EMAIL),
    ("url", _before(".", "_-", 64), _BARE),
    ("account", _words_with_digits, _IBAN),
    ("phone", _numbers, _DIGITS),
    ("encoded", _runs, _RUN),
    ("key", _words_with_digits, _KEY),
)
"""Kinds in the order in which they take their place, where one may begin, and its form."""

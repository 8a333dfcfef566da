"""What values are: the kind of a leaf, and the values that stand out of a running text.

Source: spec/guard.md, section 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from surefoot.core.gate.forms import SCALE, email, host_of, normal_text, number, trimmed, url
from surefoot.core.gate.late import Late
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import ValueKind

MOST_TOKENS = 5_000
"""Hard tokens that are taken of one text; what has more is no text that a value is looked up in."""

LONGEST_TOKEN = 2_048
LONGEST_ACCOUNT, MOST_GROUPS = 42, 8
"""Of an account that has letters in it: 34 characters in groups of four, and the spaces between them."""

_GENERIC = (
    "academy agency ai app art biz blog cafe center church city cloud club coach codes com company consulting cool "
    "deals dev digital direct edu email energy engineering events example exchange expert express farm finance fm "
    "foundation fun fund gallery game games garden global gov group guide guru health help host hosting house inc info "
    "int international invalid io jobs kitchen land law legal life link live local localhost love ltd market marketing "
    "me media mil mobi money museum name net network news ngo ninja one online onion org page partners party photo "
    "photography photos pictures place plus press pro promo properties pub red report restaurant reviews rocks run "
    "sale school science security services shop show site social software solar solutions space store stream studio "
    "support systems team tech technology test tips today tools top tours town trade training travel tv university "
    "accountant autos bid boats bond buzz cam cfd click cyou download foo gdn homes icu ink kim loan lol moe "
    "monster quest rip sbs surf uno vin wang vacations ventures vet video vip vision watch web website wiki win wine "
    "work works world wtf xyz zone"
)
_COUNTRIES = (
    "ac ad ae af ag al am ao ar as at au aw az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz ca cd cf ch ci ck "
    "cl cm cn co cr cu cv cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fo fr ga gb gd ge gf gg gh gi gl gm "
    "gn gp gq gr gt gu gy hk hm hn hr ht hu id ie il im in iq ir is it je jm jo jp ke kg kh ki km kn kr kw ky kz la lb "
    "lc li lk lr ls lt lu lv ly ma mc mg mh mk mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr "
    "nu nz om pa pe pf pg ph pk pn pr pt pw qa re ro ru rw sa sb sc sd se sg si sk sl sm sn sr st su sv sx sy sz tc td "
    "tf tg th tj tk tl tm tn to tr tt tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
)
"""Endings of hosts without a scheme. Those that are more often endings of files (py, md, sh, zip …) are left out."""

_TOP = frozenset(f"{_GENERIC} {_COUNTRIES}".split())

_REST = r"[^\s<>\"'`{}|\\^\[\]，。；、！？）》」』】]"
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LETTER = rf"[^\W{_WIDE}]"
"""A letter, digit or underscore of a script that has spaces; one of the others beside a value is no part of it."""

_SCHEMED = Late(rf"(?:[a-z][a-z0-9+.-]{{1,15}}://|www\.){_REST}{{1,2048}}", re.IGNORECASE)
_BARE = Late(
    rf"(?<!{_LETTER})(?<![@./%+-])(?:"
    rf"(?:[\w-]{{1,63}}\.){{1,8}}[a-z]{{2,24}}(?!{_LETTER})(?![@-])(?::\d{{1,5}})?(?:/{_REST}{{0,1000}})?"
    rf"|(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?::\d{{1,5}})?/{_REST}{{0,1000}})",
    re.IGNORECASE,
)
_EMAIL = Late(
    rf"(?<!{_LETTER})(?<![.%+@-])(?:{_LETTER}|[.%+-]){{1,64}}@(?:[\w-]{{1,63}}\.){{1,8}}"
    rf"(?:(?:{_LETTER}|-){{2,24}}(?!{_LETTER}|-)|[{_WIDE}]{{2,24}}(?![\w-]))"
)
_IBAN = Late(
    r"(?<!\w)[A-Za-z]{2}\d{2}(?:[A-Za-z0-9]{8,30}"
    r"|[ -][A-Za-z0-9]{4}(?:[ -](?=[A-Za-z]{0,3}\d)[A-Za-z0-9]{1,4}){1,7})(?!\w)",
    re.ASCII,
)
_DIGITS = Late(
    r"(?<![\w.,])\+?\(?[0-9](?:[ ()-]{0,2}[0-9]){6,24}(?![\w元块万亿美欧日英])(?!\.\d)",
    re.ASCII,
)
_IPV4 = Late(r"(?:\d{1,3}\.){3}\d{1,3}[:/]", re.ASCII)
_KEY = Late(r"(?<![\w/.@-])(?=[\w-]*[A-Za-z])(?=(?:[\w-]*?\d){2})[A-Za-z0-9][\w-]{7,127}(?![\w@])", re.ASCII)
_RUN = Late(r"(?<![A-Za-z0-9+/=_%-])(?:[A-Za-z0-9+/_-]{24,2048}={0,2}|(?:%[0-9A-Fa-f]{2}){8,600})(?![A-Za-z0-9+/=_%-])")
_DATE_NUMERIC = Late(r"(?:(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[/.](\d{1,2})[/.](\d{4}))(?!\d)")
_DATE_CHINESE = Late(r"(?:(\d{4})\s*年\s*)?(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
_DATE_DAY_FIRST = Late(rf"(\d{{1,2}})(?:st|nd|rd|th)?\s{{1,3}}(?:of\s)?{_MONTH}\b\.?(?:,?\s(\d{{4}}))?", re.IGNORECASE)
_DATE_RANGE = Late(
    r"(\d{1,2})(?:st|nd|rd|th)?\s?(?:to|until|till|through|and|-|\u2013)\s?(?:the\s)?(?=\d)", re.IGNORECASE
)
_DATE_MONTH_FIRST = Late(
    rf"(?<!\w){_MONTH}\.?\s(?:the\s)?(\d{{1,2}})(?:st|nd|rd|th)?(?!\d|:\d)(?:,?\s(\d{{4}}))?", re.IGNORECASE
)
_CLOCK = Late(r"(?<!\d)\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?!\d)")
_NUMBER = Late(
    r"(?<![A-Za-z0-9_.])[-+]?(?:[$€£¥]\s?)?(\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"(?:\s?({SCALE})(?=[元块]|(?i:usd|eur|gbp|cny|jpy|chf)\b|(?!\w)|[\u3400-\u9fff])|(?=%?(?!\w)|[元块个张份位件次台本]|(?-i:[A-Z]{{3}})\b))",
    re.IGNORECASE,
)
_LIST_NUMBER = Late(r"(?m)^[ \t]*\d{1,3}[.)](?=\s)")
_WHOLE_NUMBER = Late(
    rf"[-+]?(?:[$€£¥]\s?)?(?:\d{{1,3}}(?:[,']\d{{3}})+|\d+)(?:\.\d+)?(?:\s?{SCALE})?(?:\s?(?:[$€£¥元块]|[A-Za-z]{{3}}))?",
    re.IGNORECASE,
)
_WHOLE_DATE = Late(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_DOT = Late(r"(?<=[A-Za-z0-9-])[。．｡](?=[a-z]{2,24}(?![A-Za-z0-9]))")
"""A full stop of another script that is read as the dot of a host."""
_RUN_OF_DIGITS = Late(r"\d+")
_CLOSING = ".,;:!?'\")*_~"


@dataclass(frozen=True, slots=True)
class Token:
    """A value that stands out of a running text: its kind, as written, its normal form, and where it stands."""

    kind: ValueKind
    text: str
    norm: str
    start: int
    end: int


_IS_WORD = Late(r"[^\W\d_](?:[^\W\d_]| (?! )|'|, ){0,22}")
"""Words without a digit and without a sign that any kind needs, so short that they are no encoded run."""


def kind_of(value: object) -> ValueKind:
    """What a leaf looks like as a whole."""
    if isinstance(value, bool) or value is None:
        return "text"
    if isinstance(value, int | float):
        return "number"
    text = str(value).strip()
    if not 0 < len(text) <= LONGEST_TOKEN:
        return "text"
    if _IS_WORD.fullmatch(text):
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
    kind = kind or kind_of(value)
    text = str(value).strip()
    match kind:
        case "email":
            return "email:" + email(text)
        case "url":
            return "url:" + url(text)
        case "account" | "phone":
            return "digits:" + re.sub(r"[\s()-]", "", text).upper()
        case "key" | "encoded":
            return "key:" + text
        case "number":
            return "number:" + number(text)
        case "date":
            return "date:" + normal_text(text)
        case _:
            return "text:" + normal_text(text).removeprefix("./")


def dates_of(text: str) -> tuple[tuple[int, int, int], ...]:
    """The days that a text names, as (month, day, year or 0)."""
    return tuple(day for day, _, _ in _dates(text))


_LONGEST_MONTH = 15


def _dates(text: str) -> Iterator[tuple[tuple[int, int, int], int, int]]:
    """The days of a text with their places; looks only around digits."""
    until = 0
    for run in _RUN_OF_DIGITS.finditer(text):
        at = run.start()
        if at < until or run.end() - at > 4:  # noqa: PLR2004  # a year is the longest number of a date
            continue
        for day, start, end in _dates_at(text, at):
            yield day, start, end
            until = end


def _dates_at(text: str, at: int) -> Iterator[tuple[tuple[int, int, int], int, int]]:
    if m := _DATE_NUMERIC.match(text, at):
        if m[1]:
            yield from _day(m, m[2], m[3], m[1])
        else:  # day and month come in either order
            yield from _day(m, m[4], m[5], m[6])
            yield from _day(m, m[5], m[4], m[6])
    elif m := _DATE_CHINESE.match(text, at):
        yield from _day(m, m[2], m[3], m[1])
    elif (m := _DATE_DAY_FIRST.match(text, at)) and not text[at - 1 : at].isalnum():
        yield from _day(m, _month(m[2]), m[1], m[3])
    elif (m := _DATE_RANGE.match(text, at)) and (last := _DATE_DAY_FIRST.match(text, m.end())):
        yield from _day(m, _month(last[2]), m[1], last[3])
    elif text[at - 1 : at].isspace():
        m = _DATE_MONTH_FIRST.search(text, max(0, at - _LONGEST_MONTH), at + 16)
        if m is not None and m.start(2) == at:
            yield from _day(m, _month(m[1]), m[2], m[3])


def _month(name: str) -> str:
    return str(_MONTHS.index(name[:3].casefold()) + 1)


def _day(m: re.Match[str], month: str, day: str, year: str | None) -> Iterator[tuple[tuple[int, int, int], int, int]]:
    if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:  # noqa: PLR2004  # the calendar
        yield (int(month), int(day), int(year or 0)), m.start(), m.end()


def numbers_of(text: str) -> tuple[str, ...]:
    """The exact numbers of a text; digits of dates, times, URLs, accounts and list marks are none."""
    spans = [(start, end) for _, start, end in _dates(text)]
    spans += [m.span() for pattern in (_CLOCK, _LIST_NUMBER) for m in pattern.finditer(text)]
    spans += [(t.start, t.end) for t in hard_tokens(text)]
    blank = bytearray(len(text))
    for start, end in spans:
        blank[start:end] = b"\1" * (end - start)
    found = (m for m in _NUMBER.finditer(text) if not blank[m.start(1)])
    return tuple(number(one) for m in found for one in _readings(m[1], m[2] or ""))


def _readings(digits: str, scale: str) -> tuple[str, ...]:
    """What a number with its scale may be; "5 m" are metres or millions."""
    return (digits, digits + scale) if scale in ("m", "M") else (digits + scale,)


def hard_tokens(text: str, *, is_content: bool = False) -> tuple[Token, ...]:
    """URLs, e-mail addresses, accounts, phones, key-like strings and encoded runs, in order, none inside another.

    Looks only around the signs that each kind must have, so that plain prose costs next to nothing. In a content that
    goes out (`is_content`) a host with a path is a URL whatever it ends in.
    """
    if not text.isascii():
        text = _DOT.sub(".", text)
    found: list[Token] = []
    taken: bytearray | None = None
    for kind, starts, pattern in _KINDS:
        match = pattern.match
        for start in starts(text):
            if taken is not None and taken[start]:
                continue
            m = match(text, start)
            token = _token(kind, m.group(), start, is_content) if m else None
            if token is None:
                continue
            if taken is None:
                taken = bytearray(len(text))
                for _, first, end in _dates(text):
                    taken[first:end] = b"\1" * (end - first)
            if any(taken[start : token.end]):
                continue
            taken[start : token.end] = b"\1" * (token.end - start)
            found.append(token)
            if len(found) >= MOST_TOKENS:
                break
    found.sort(key=lambda token: token.start)
    return tuple(found)


def _token(kind: ValueKind, text: str, start: int, is_content: bool) -> Token | None:  # handed down
    """The token that a match is, cut to its end; None when on a second look it is none."""
    if kind == "url":
        text = trimmed(text)
        is_named = "://" in text or text.casefold().startswith("www.") or (text[0].isdigit() and _IPV4.match(text))
        is_named = is_named or (is_content and "/" in text)
        if host_of(text).rpartition(".")[2] not in _TOP:
            text = _not_run_on(text) or (text if is_named else "")
            if not text or not host_of(text):
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


def _not_run_on(text: str) -> str:
    """Of a host that a sentence ran into ("site.com.They") the part with a known ending; "" if there is none."""
    rest = text.partition("://")[2] or text
    labels = rest.partition("/")[0].split(".")
    is_run_on = len(labels) > 2 and labels[-2].casefold() in _TOP and labels[-1][:1].isupper()  # noqa: PLR2004  # a host
    return text[: len(text) - len(rest)] + ".".join(labels[:-1]) if is_run_on else ""


_IS_WIDE = Late(f"[{_WIDE}]")


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


_SCHEME_BEGINS = Late(r"[a-z][a-z0-9+.-]*\Z", re.IGNORECASE | re.ASCII)


def _schemes(text: str) -> Iterator[int]:
    at = text.find("://")
    while at >= 0:
        if m := _SCHEME_BEGINS.search(text, max(0, at - 16), at):
            yield m.start()
        at = text.find("://", at + 1)
    low = text.casefold() if len(text.casefold()) == len(text) else text
    yield from _before("www.", "", 0)(low)


def _digit_words(text: str) -> Iterator[int]:
    """Where words of ASCII begin that hold a digit."""
    last = 0
    for run in _RUN_OF_DIGITS.finditer(text):
        start = run.start()
        while start > last and run.start() - start < 128 and _is_of_key(text[start - 1]):  # noqa: PLR2004  # the longest key
            start -= 1
        yield start
        last = run.end()


def _is_of_key(sign: str) -> bool:
    return sign.isascii() and (sign.isalnum() or sign in "_-")


def _numbers(text: str) -> Iterator[int]:
    for run in _RUN_OF_DIGITS.finditer(text):
        start = run.start()
        start -= text[start - 1 : start] == "("
        yield start - (text[start - 1 : start] == "+")


def _runs(text: str) -> Iterator[int]:
    if any(len(word) >= 24 for word in text.split()):  # noqa: PLR2004  # the shortest run
        for m in _RUN.finditer(text):
            yield m.start()


_KINDS: tuple[tuple[ValueKind, Callable[[str], Iterator[int]], Late], ...] = (
    ("url", _schemes, _SCHEMED),
    ("email", _before("@", "._%+-", 64), _EMAIL),
    ("url", _before(".", "_-", 64), _BARE),
    ("account", _digit_words, _IBAN),
    ("phone", _numbers, _DIGITS),
    ("encoded", _runs, _RUN),
    ("key", _digit_words, _KEY),
)
"""Kinds in the order in which they take their place, where one may begin, and its form."""

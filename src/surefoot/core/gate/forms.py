"""Normal forms: how a value is written before it is compared.

A value is compared only whole: a name inside a longer word, a host inside a longer host prove nothing. Rewriting,
encoding or splitting a value never makes it another's. Source: spec/guard.md, section 4.5.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal, InvalidOperation

from surefoot.core.gate.late import Late

_SCHEME = Late(r"[A-Za-z][A-Za-z0-9+.-]*")
_CJK = Late(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def normal_text(text: str) -> str:
    """A text as texts are compared: NFKC, no format characters, casefold, single spaces, outer quotes off."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return " ".join(text.casefold().split()).strip("\"'`“”‘’「」『』《》 ")


def holds(text: str, part: str) -> bool:
    """Whether `part` stands in `text` in whole words; both in their normal form. Never inside a word."""
    return place_in(text, part) >= 0


def place_in(text: str, part: str) -> int:
    """Where `part` first stands in `text` in whole words, as in `holds`; -1 where it does not."""
    at = text.find(part) if part else -1
    while at >= 0:
        end = at + len(part)
        if _is_edge(text, at - 1, at) and _is_edge(text, end, end - 1):
            return at
        at = text.find(part, at + 1)
    return -1


def is_chinese(text: str) -> bool:
    """Whether a text is all letters of a script without spaces."""
    return bool(text) and all(c.isalnum() and _CJK.match(c) for c in text)


_JOINTS = frozenset("-./\\@+%~")


def holds_token(text: str, part: str) -> bool:
    """Whether `part` stands in `text` in whole words, and is no piece of a path, a file name or a hyphenated word."""
    at = text.find(part) if part else -1
    while at >= 0:
        end = at + len(part)
        if _is_end(text[max(0, at - 2) : at][::-1], part[0]) and _is_end(text[end : end + 2], part[-1]):
            return True
        at = text.find(part, at + 1)
    return False


def _is_end(outside: str, inside: str) -> bool:
    """Whether a token ends between what is inside and what follows outside, read away from it."""
    if not outside or not _is_edge(outside[0] + inside, 0, 1):
        return not outside
    is_joined = outside[0] in _JOINTS and outside[1:].isalnum()
    return not is_joined and not (inside in _JOINTS and outside[0].isalnum() and not _CJK.match(outside[0]))


def _is_edge(text: str, outside: int, inside: int) -> bool:
    """Whether a word ends between two neighbouring characters. Chinese has no such ends, so each character is one."""
    if not 0 <= outside < len(text):
        return True
    out, ins = text[outside], text[inside]
    if not (out.isalnum() or out == "_") or not (ins.isalnum() or ins == "_"):
        return True
    return bool(_CJK.match(out) or _CJK.match(ins))


def email(text: str) -> str:
    """An address without `mailto:`, casefolded, its domain in IDNA form. No dot or plus is folded."""
    if text.isascii():
        return normal_text(text).removeprefix("mailto:").strip("<>")
    local, _, host = text.strip().strip("\"'`“”‘’「」『』《》<> ").rpartition("@")
    return f"{normal_text(local).removeprefix('mailto:').strip('<')}@{idna(_host(host))}"


def url(text: str) -> str:
    """A URL without http and https, `www.`, default port, fragment and root slash; host in lower case and IDNA form.

    Any other scheme stays, and a "://" that has none before it hides no host: "evil.example/://good.example".
    """
    scheme, rest = _scheme_and_rest(trimmed(text.strip()).partition("#")[0])
    host, slash, path = rest.partition("/")
    if not slash and "?" in host:
        host, mark, query = host.partition("?")
        path = mark + query
    elif path:
        path = "/" + path
    host = _host(host).removeprefix("www.")
    for port in (":80", ":443"):
        host = host.removesuffix(port)
    return scheme + idna(host) + ("" if path == "/" else path)


def _scheme_and_rest(bare: str) -> tuple[str, str]:
    """The scheme of a URL with its "://", "" for http and https, and what follows."""
    scheme, found, rest = bare.partition("://")
    if not found or not _SCHEME.fullmatch(scheme):
        return "", bare
    return ("" if scheme.casefold() in ("http", "https") else f"{scheme.casefold()}://"), rest


def host_of(text: str) -> str:
    """The host of a URL in its normal form."""
    return re.split(r"[/?]", _scheme_and_rest(url(text))[1], maxsplit=1)[0].rpartition("@")[2].partition(":")[0]


def has_user_info(text: str) -> bool:
    """Whether a URL holds a name before its host, which makes it look like another's."""
    _, found, rest = text.partition("://")
    return bool(found) and "@" in re.split(r"[/?#]", rest, maxsplit=1)[0]


def _host(text: str) -> str:
    """A host in lower case, without format characters, with a dot for what is read as one; its letters stay."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", text).lower().replace("。", ".")
    return "".join(c for c in plain if unicodedata.category(c) != "Cf")


def idna(host: str) -> str:
    """A host in the form in which it is resolved; as it is where it has none.

    The letters that IDNA 2008 keeps and the codec of 2003 writes otherwise stay what they are (RFC 5894, section 7.2).
    """
    if host.isascii():
        return host
    try:
        return ".".join(_label(one) for one in host.split("."))
    except UnicodeError:
        return host


def _label(text: str) -> str:
    if "ß" in text or "ς" in text:
        return f"xn--{text.encode('punycode').decode()}"
    return text.encode("idna").decode()


def hides(text: str) -> bool:
    """Whether a text holds characters that do not show."""
    return not text.isascii() and any(unicodedata.category(c) == "Cf" for c in text)


SCALES = {
    "k": 3,
    "thousand": 3,
    "m": 6,
    "million": 6,
    "bn": 9,
    "billion": 9,
    "百": 2,
    "千": 3,
    "万": 4,
    "百万": 6,
    "亿": 8,
}
"""What is written behind a number, and the power of ten that it stands for."""
SCALE = r"(?:k|thousand|m|million|bn|billion|百万|[百千万亿])"
_SCALED = Late(rf"\d\s?({SCALE})(?![a-z])", re.IGNORECASE)


def number(text: str) -> str:
    """The exact decimal of a number, without currency and group marks: "1,200.50" is "1200.5", "5k" is "5000"."""
    bare, scale = text, None
    if not text[-1:].isdigit():
        scale = _SCALED.search(text)
        bare = text[: scale.start(1)] if scale else re.sub(r"[A-Za-z]{3}$", "", text)
    digits = re.sub(r"[^0-9.eE+-]", "", bare) or text
    try:
        value = (Decimal(digits) * 10 ** (SCALES[scale[1].lower()] if scale else 0)).normalize()
    except InvalidOperation:
        return text
    return format(value, "f") if abs(value.adjusted()) < 40 else str(value)  # noqa: PLR2004  # no longer written out


def trimmed(text: str) -> str:
    """A URL without the punctuation of the sentence behind it."""
    while text and (text[-1] in ".,;:!?'\"*_~" or (text[-1] == ")" and text.count("(") < text.count(")"))):
        text = text[:-1]
    return text

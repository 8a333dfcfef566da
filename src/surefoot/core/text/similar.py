"""Are two errors the same? What changes from one try to the next is masked, numbers count, then letters are compared.

A loop hides behind times, ids and addresses, which differ each time; progress hides in a long text of which one number
changed. So the first are masked and the second must be equal before any likeness of letters is asked for.

Every pattern here takes linear time: none can start a second scan inside what a first one has gone through. Patterns
begin with a literal or a class where they can, and look behind only then: the search for such a start is several times
faster. Source: spec/primitives.md, 2.3.
"""

from __future__ import annotations

import re
from unicodedata import normalize

_LONGEST_READ = 8_000
_LONGEST_KEPT = 1_000
"""Characters that are read, and kept, of either end of an error."""

_ROUNDING = 1e-9

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")

_NAME_END = r"(?![0-9A-Za-z_])"
_FIRST_DIGIT = r"[0-9](?<![0-9A-Za-z_.][0-9])"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_ZONE = r"(?: ?(?:[AaPp][Mm]|UTC|GMT|Z)\b)?(?: ?[+-][0-9]{2}:?[0-9]{2}\b)?"
_SECONDS = rf":[0-5][0-9](?:[.,][0-9]+)?{_ZONE}"
_TIME = rf"[0-2]?[0-9]:[0-5][0-9](?:{_SECONDS})?"
_DATE = (
    r"(?:[0-9]{3}([-/.])[0-9]{1,2}\1[0-9]{1,2}(?![0-9])"  # 2026-08-20
    r"|[0-9]?([-/.])[0-9]{1,2}\2[0-9]{4}(?![0-9])"  # 20.08.2026
    rf"|[0-9]?[ /-]{_MONTH}[ /-][0-9]{{4}}(?![0-9])"  # 20/Aug/2026
    r"|[0-9]{3}年[0-9]{1,2}月[0-9]{1,2}日"
    r"|[0-9]{7}(?=T[0-9]{4}))"  # 20260820T101112Z
    rf"(?:[T :,]{{1,2}}(?:{_TIME}|[0-9]{{4,6}}Z?\b))?{_ZONE}"
)
_STAMP = re.compile(
    rf"{_FIRST_DIGIT}(?:{_DATE}"
    rf"|[0-9]?(?<!:[0-9])(?<!:[0-9]{{2}}):[0-5][0-9]{_SECONDS}"
    # without seconds it is a time only where it cannot be a line and a column
    rf"|[0-9](?<![:(][0-9]{{2}})(?<!line [0-9]{{2}})(?<=[01][0-9]|2[0-3]):[0-5][0-9](?![0-9:]){_ZONE})"
)
_NAMED_DATE = re.compile(rf"{_MONTH} {{1,2}}[0-9]{{1,2}}(?![0-9])(?:,? [0-9]{{4}}(?![0-9]))?(?:,? {_TIME})?")
_WEEKDAY = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? (?=<time>)")

_UNIT = (  # the longest first: the first that fits is taken for good
    r"(?:(?:milli|micro|nano)?seconds?|minutes?|hours?|days?|msecs?|secs?|mins?|hrs?|ns|us|µs|μs|ms|s)"
)
_DURATION = re.compile(
    rf"{_FIRST_DIGIT}[0-9]*+(?:\.[0-9]+)?"
    rf"(?:(?>(?: ?{_UNIT}|[mhd])(?:[0-9]+(?:\.[0-9]+)?(?:{_UNIT}|[mhd]))*){_NAME_END}"
    rf"| ?(?:毫秒|微秒|纳秒|秒钟?|分钟|小时|天))"
)
_DIGITS_OF_UUID = re.compile(r"[0-9]{8}-[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{12}(?![0-9])")
_ADDRESS = re.compile(r"0[xX][0-9A-Fa-f]+")
_HEX = re.compile(r"[0-9A-Fa-f-]{6,}")
_LEAST_HEX = 6
_LONG_NUMBER = re.compile(r"[0-9]{7,}(?:\.[0-9]+)?")
_PORT = re.compile(r":(?<=[\w\]]:)([0-9]{5})(?![0-9]|:[0-9])")
_EPHEMERAL_PORTS = range(32_768, 65_536)
_TEMPORARY_PATH = re.compile(
    r"/(?<![\w.~-]/)(?:private/)?(?:tmp|var/tmp|var/folders|dev/shm)/[^\s'\"`:,;()\[\]<>]+", re.IGNORECASE
)
_TEMPORARY_PATH_ON_WINDOWS = re.compile(
    r"[A-Z]:[\\/](?:[^\s:'\"<>|]*[\\/])?te?mp[\\/][^\s:'\"<>|,;()\[\]]+", re.IGNORECASE
)
_COUNTER = re.compile(r"(?<![A-Za-z])(attempt|retry|try|pid)(?: (?:no\.?|number))?\W{0,4}[0-9]+", re.IGNORECASE)
_HAS_DIGIT = re.compile(r"[0-9]")
_NUMBER = re.compile(r"(?<!\w)-\d+(?:\.\d+)?|\d+(?:\.\d+)?")


def similarity(a: str, b: str) -> float:
    """How alike two texts are as they stand, from 0 to 1: 1 − Levenshtein distance / longer length, over code points.

    Two empty texts are alike (1.0), an empty one and another are not (0.0). Costs the product of the lengths.
    """
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - a run without errors does not pay for the import

    return Levenshtein.normalized_similarity(a, b)


def normal(error: str) -> str:
    """What is compared of an error: masked, on one line, at most 2,000 characters. Costs at most some milliseconds."""
    return _ends(masked(_ends(error, _LONGEST_READ)), _LONGEST_KEPT)


def likeness(a: str, b: str, threshold: float) -> float | None:
    """How alike two normal errors are, if they are the same error: at or above the threshold and with equal numbers."""
    if a == b:
        return 1.0
    longer = max(len(a), len(b))
    most = int((1 - threshold) * longer + _ROUNDING)
    if abs(len(a) - len(b)) > most or _NUMBER.findall(a) != _NUMBER.findall(b):
        return None
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - as above

    distance = Levenshtein.distance(a, b, score_cutoff=most)
    return None if distance > most else 1 - distance / longer


def masked(text: str) -> str:
    """The text in NFC on one line without colours, and what changes from try to try replaced by its kind."""
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = normalize("NFC", text)
    text = " ".join(text.split())
    if "/" in text:
        text = _TEMPORARY_PATH.sub("<path>", text)
    if ":\\" in text or ":/" in text:
        text = _TEMPORARY_PATH_ON_WINDOWS.sub("<path>", text)
    if not _HAS_DIGIT.search(text):
        return text
    # order is meaning: a date is not an id, an id no long number, and a time no duration
    text = _NAMED_DATE.sub("<time>", _STAMP.sub("<time>", text))
    if "<time>" in text:
        text = _WEEKDAY.sub("", text)
    lower = text.lower()
    if "try" in lower or "attempt" in lower or "pid" in lower:
        text = _COUNTER.sub(r"\1 <n>", text)
    text = _ADDRESS.sub("<address>", _DIGITS_OF_UUID.sub("<id>", text))
    text = _LONG_NUMBER.sub("<number>", _DURATION.sub("<duration>", _HEX.sub(_id_masked, text)))
    return _PORT.sub(lambda match: ":<port>" if int(match[1]) in _EPHEMERAL_PORTS else match.group(), text)


def _id_masked(match: re.Match[str]) -> str:
    """A run of hex digits and dashes with its id masked: a whole word of six digits, a letter and a figure among them.

    The run may begin or end inside a word ("failED-9f2c1a"); that part of it is not an id.
    """
    text, start, end = match.string, match.start(), match.end()
    run = match.group()
    head = tail = ""
    if start and text[start - 1].isalnum():
        head, dash, run = run.partition("-")
        head += dash
    if end < len(text) and text[end].isalnum():
        run, dash, tail = run.rpartition("-")
        tail = dash + tail
    bare = run.strip("-")
    digits = bare.replace("-", "")
    if len(digits) < _LEAST_HEX or digits.isalpha() or digits.isdecimal():
        return match.group()
    return head + run.replace(bare, "<id>") + tail


def _ends(text: str, most: int) -> str:
    return text if len(text) <= 2 * most else text[:most] + text[-most:]

"""Is the run going in circles? A pure question about what its turns asked for and what they got.

A trail is a row of entries, one for each turn of a model with calls. Two turns are the same entry when they made the
same calls *with the same results*: fixing and testing again, or asking again while the answer changes, is progress. A
block of p entries that comes again and again makes each entry equal to the one p before it, so for each period p one
number says it all: how many of the latest entries in a row were equal to the one p before them. That number, divided
by p, is the number of copies beyond the first. So a new entry costs `max_period` comparisons, whatever the length of
the history, and a trail keeps no more than `window` entries.

Where the signs stand, counted in copies of a block of one entry:

    sign                                   correct   block   stop
    the same entries again                 repeats   +1      +2
    … with a tool that is polled in them   10        20      30
    replies without call and answer        3         -       5
    one instruction, one report (dual)     -         -       repeats

For a longer block, "+1" and "+2" are single entries that continue it. A proposed turn has no results yet: it continues
a block when it asks for the calls that would come next. Source: spec/primitives.md, 2.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, repeat
from operator import attrgetter
from typing import cast
from unicodedata import normalize

from surefoot.core.text import json_text
from surefoot.core.text.look import masked
from surefoot.types.dataclass import dataclass, field, replace
from surefoot.types.progress import CONTINUE, StepDecision, StepIterationConfig, Verdict

_LONGEST_MASKED = 64 * 1024
_LONGEST_NAME = 80
_DEEPEST = 64
_FORMS = re.compile(r"[^\x00-\x7f]|\d[.eE]")  # what JSON may hold in several forms: accents, and floats
_ASKED = attrgetter("asked")
_MOST_SILENT = 5
_SILENT: tuple[tuple[int, Verdict], ...] = ((_MOST_SILENT, "stop"), (3, "correct"))
_POLLED: tuple[tuple[int, Verdict], ...] = ((30, "stop"), (20, "block"), (10, "correct"))
_BEYOND: tuple[tuple[int, Verdict], ...] = ((2, "stop"), (1, "block"), (0, "correct"))
REMEDY = "Use another tool, other arguments, or answer with what is known."


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One call that has ended; `seen_call` makes it. `asked` is its digest; `whole`, if any, stands for its result.

    Results are masked only when two of the same call differ, since most calls of a run are never made again.
    """

    name: str
    asked: bytes
    ok: bool
    result: str = ""
    whole: str = ""
    polling: bool = False
    _memo: dict[str, bytes] = field(default_factory=dict[str, bytes], init=False, repr=False, compare=False)

    def is_same(self, other: SeenCall) -> bool:
        """Whether the other is the same call with the same result."""
        if self.asked != other.asked or self.ok != other.ok or self.whole != other.whole:
            return False
        return self.result == other.result or self._outcome() == other._outcome()

    def _outcome(self) -> bytes:
        if "outcome" not in self._memo:
            self._memo["outcome"] = outcome(self.result)
        return self._memo["outcome"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn: the digest of what it asked for, its calls in the order of theirs, and its number in the journal."""

    asked: bytes
    calls: tuple[SeenCall, ...] = ()
    number: int = 0

    def is_same(self, other: Entry) -> bool:
        """Whether the other turn made the same calls with the same results."""
        if self.asked != other.asked or len(self.calls) != len(other.calls):
            return False
        return all(one.is_same(another) for one, another in zip(self.calls, other.calls, strict=True))


@dataclass(frozen=True, slots=True)
class Trail:
    """The latest turns of a run.

    `entries`: oldest first. `streaks`: for each period from 1, how many of the latest in a row were equal to the one
    that far before them. `silent`: the numbers of the latest replies in a row with neither call nor accepted answer.
    `rounds`: the latest rounds of two models that were the same, each as its digest and the number of its last reply.
    """

    entries: tuple[Entry, ...] = ()
    streaks: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    rounds: tuple[tuple[bytes, int], ...] = ()


NO_TRAIL = Trail()


def call_digest(name: str, arguments: object, text: str = "") -> bytes:
    """What makes calls the same, whatever the order of keys, form of accents, `1` or `1.0`. `text`: the two as JSON."""
    try:
        text = text or json_text([name, arguments], sort_keys=True)
    except TypeError:  # mappings of other kinds
        text = ""
    if not text or _FORMS.search(text):
        text = json_text([name, _canonical(arguments, _DEEPEST)], sort_keys=True)
    return digest(text)


def digest(*parts: str | bytes) -> bytes:
    """16 bytes that are the same for the same parts only."""
    hashed = blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.digest()


def outcome(result: str) -> bytes:
    """The digest of a result for which times, ids and the like do not count; over 64 KiB it counts as it is."""
    is_long = len(result) > _LONGEST_MASKED // 4 and len(result.encode("utf-8", "surrogatepass")) > _LONGEST_MASKED
    return digest("raw", result) if is_long else digest(masked(result))


def seen_call(name: str, asked: object, *, ok: bool, result: str, polling: bool = False, whole: str = "") -> SeenCall:
    """A call that has ended. `whole` is a digest of its whole result, where `result` is only a part of that."""
    return SeenCall(name, call_digest(name, asked), ok, "" if whole else result, whole, polling)


def proposal(calls: Iterable[bytes]) -> bytes:
    """What is the same for turns of the same calls (`call_digest` of each), in any order and however often."""
    return b"".join(sorted(set(calls)))


def turn(trail: Trail, config: StepIterationConfig, calls: Sequence[SeenCall], number: int = 0) -> Trail:
    """The trail after a turn whose calls have ended, failures of infrastructure left out; none adds nothing."""
    if not calls:
        return replace(trail, silent=())
    distinct: list[SeenCall] = []
    for call in sorted(calls, key=_ASKED):
        if not distinct or not call.is_same(distinct[-1]):
            distinct.append(call)
    return add(trail, config, Entry(proposal(map(_ASKED, distinct)), tuple(distinct), number))


def blocked(trail: Trail, config: StepIterationConfig, calls: Sequence[SeenCall], number: int = 0) -> Trail:
    """The trail after a turn all of which was denied: when it would continue a block, it counts as that repeat."""
    signs = _continued(trail, config, proposal(map(_ASKED, calls)))
    return _again(trail, config, signs, number) or turn(trail, config, calls, number)


def repeated(trail: Trail, config: StepIterationConfig, number: int = 0, *, least_period: int = 1) -> Trail:
    """The trail after one more entry of the circle that it is in; as it is when it is in none."""
    return _again(trail, config, _signs(trail, config, "", least_period), number) or trail


def silent(trail: Trail, number: int = 0) -> Trail:
    """The trail after a reply that held neither a call nor an accepted answer."""
    return replace(trail, silent=(*trail.silent, number)[-_MOST_SILENT:])


def round_ended(trail: Trail, instruction: str, calls: Iterable[SeenCall], report: str, number: int = 0) -> Trail:
    """The trail after a round of two models: what was instructed, what was called for it with what result, the report.

    A polled tool has limits of its own, so such a round is left out.
    """
    made = tuple(calls)
    if any(call.polling for call in made):
        return trail
    results = (part for call in made for part in (call.asked, call.whole, outcome(call.result)))
    mark = digest(instruction, outcome(report), *results)
    same = trail.rounds if trail.rounds and trail.rounds[-1][0] == mark else ()
    return replace(trail, rounds=(*same, (mark, number)))


def add(trail: Trail, config: StepIterationConfig, entry: Entry) -> Trail:
    """The trail with one more entry."""
    latest = _latest(trail, config)
    streaks = [0] * len(latest)
    if entry.asked in map(_ASKED, latest):
        before = zip(latest, chain(trail.streaks, repeat(0)), strict=False)
        streaks = [streak + 1 if entry.is_same(one) else 0 for one, streak in before]
    return Trail((*trail.entries, entry)[-config.window :], tuple(streaks), rounds=trail.rounds)


def standing(trail: Trail, config: StepIterationConfig, *, who: str = "the run", least_period: int = 1) -> StepDecision:
    """What the trail as it is gives cause for: the strictest sign, of those the shortest block."""
    if not (config.enabled and (trail.silent or trail.rounds or any(trail.streaks))):
        return CONTINUE
    signs = [_silence(trail.silent, who)]
    if (count := len(trail.rounds)) >= config.repeats:
        reason = f"{who} appears stuck: the same instruction with the same report came {count} times in a row"
        signs.append(
            StepDecision("stop", "stuck", "repeat", reason, known_records(number for _, number in trail.rounds))
        )
    signs += [sign for sign, _ in _signs(trail, config, who, least_period)]
    return max(signs, key=lambda sign: sign.strictness)


def proposed(trail: Trail, config: StepIterationConfig, calls: Iterable[bytes]) -> StepDecision:
    """What to do about a turn that asks for these calls (`call_digest` of each), before any of them is run.

    `block` and `stop`: it continues a block that came often enough, and must not run. `correct`: it may run, and the
    model is to be told after it. Without calls it is a reply that holds no accepted answer either.
    """
    if not config.enabled:
        return CONTINUE
    asked = proposal(calls)
    if not asked:
        return _silence((*trail.silent, 0)[-_MOST_SILENT:], "the run")
    if asked not in map(_ASKED, _latest(trail, config)):
        return CONTINUE
    return max((sign for sign, _ in _continued(trail, config, asked)), key=lambda sign: sign.strictness)


def progress_note(sign: StepDecision) -> str:
    """What a model is told when it goes in circles. It names calls and counts, and quotes no result."""
    return f"[PROGRESS_NOTE] {sign.reason[0].upper()}{sign.reason[1:]}. It will not be different next time. {REMEDY}"


def visible_name(name: str) -> str:
    """A name in one line of visible characters, of at most 80 of its own."""
    cut = name[:_LONGEST_NAME]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def known_records(numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers of records that are known; 0, where every journal starts, stands for none."""
    return tuple(number for number in numbers if number)


def _again(
    trail: Trail, config: StepIterationConfig, signs: Iterable[tuple[StepDecision, int]], number: int
) -> Trail | None:
    """The trail with the next entry of the circle that the strictest of the signs (each with its period) tells of."""
    found = max((sign for sign in signs if sign[0].strictness), key=lambda sign: sign[0].strictness, default=None)
    return None if found is None else add(trail, config, replace(trail.entries[-found[1]], number=number))


def _signs(trail: Trail, config: StepIterationConfig, who: str, least: int) -> Iterator[tuple[StepDecision, int]]:
    """The sign of each period that comes round at least once, and the period."""
    for period, streak in enumerate(trail.streaks, 1):
        if period >= least and streak:
            yield _sign(trail, config, period, streak, who), period


def _continued(trail: Trail, config: StepIterationConfig, asked: bytes) -> Iterator[tuple[StepDecision, int]]:
    """The sign that each period would give, and the period, if the next entry were the one that continues its block."""
    for period, entry in enumerate(_latest(trail, config), 1):
        if entry.asked == asked:
            streak = trail.streaks[period - 1] if period <= len(trail.streaks) else 0
            yield _sign(trail, config, period, streak + 1, "the run", ahead=1), period


def _latest(trail: Trail, config: StepIterationConfig) -> tuple[Entry, ...]:
    """The entries that a next one is compared with, one for each period from 1; newest first."""
    return trail.entries[: -config.max_period - 1 : -1]


def _sign(
    trail: Trail, config: StepIterationConfig, period: int, streak: int, who: str, *, ahead: int = 0
) -> StepDecision:
    """The sign of a streak, the last `ahead` entries of which are only proposed."""
    block = trail.entries[-period:]
    if any(call.polling for entry in block for call in entry.calls):
        verdict = _reached(streak // period + 1, _POLLED)
    else:
        beyond = streak - (config.repeats - 1) * period
        verdict = _reached(beyond, _BEYOND)
    if verdict == "continue":
        return CONTINUE
    names = "; ".join(" and ".join(dict.fromkeys(visible_name(call.name) for call in entry.calls)) for entry in block)
    what = f"{names} with the same arguments" if block[0].calls else "the same failures"
    order = "" if period == 1 else ", in the same order"
    times = f"{streak // period + 1} times in a row{order}"
    reason = f"{who} appears stuck: {what} came {times}, and nothing new came of it"
    evidence = known_records(entry.number for entry in trail.entries[-(streak + period - ahead) :])
    return StepDecision(verdict, "stuck", "repeat" if period == 1 else "cycle", reason, evidence)


def _silence(numbers: tuple[int, ...], who: str) -> StepDecision:
    verdict = _reached(len(numbers), _SILENT)
    if verdict == "continue":
        return CONTINUE
    reason = f"{who} appears stuck: {len(numbers)} replies in a row held neither a call nor an answer"
    return StepDecision(verdict, "stuck", "monologue", reason, known_records(numbers))


def _reached(count: int, limits: Sequence[tuple[int, Verdict]]) -> Verdict:
    """The verdict of the first limit that is reached; the strictest stands first."""
    for limit, verdict in limits:
        if count >= limit:
            return verdict
    return "continue"


def _canonical(value: object, deeper: int) -> object:
    """A JSON value whose equal forms are one. What lies very deep is taken as it is."""
    if isinstance(value, str):
        return value if value.isascii() else normalize("NFC", value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not deeper or value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, (dict, Mapping)):  # to ask for a dict is quick
        members = cast("Mapping[str, object]", value)  # the keys of a JSON object are text
        return {cast("str", _canonical(key, 1)): _canonical(member, deeper - 1) for key, member in members.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item, deeper - 1) for item in cast("Sequence[object]", value)]
    return value

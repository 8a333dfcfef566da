"""What people say to runs: yes, no, what became of a call, a signature, a note, that it ends or goes on.

A word goes into the inbox of its run with the name of the token, and counts only for what was shown. Whoever drives the
run hears it; this waits for a moment, and says where to ask later. Source: spec/serving.md, section 6.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import orjson
from starlette.responses import Response

from surefoot.journal.codec import encode
from surefoot.server.answers import STARTED_BY, Problem, answer, dumped, run_json
from surefoot.server.api import Asked
from surefoot.server.reads import check_reads, run_of
from surefoot.server.shapes import Ended, GoOn, No, Said, Settled, Signature, Tighter, Yes
from surefoot.server.starts import tightened
from surefoot.server.tales import Reading
from surefoot.speak import speak
from surefoot.telling.text import visible
from surefoot.types.errors import UsageError
from surefoot.types.ports import RunSummary
from surefoot.types.words import Approve, Cancel, Note, Posted, Refuse, Resume, Settle, Sign, Word


async def approve(asked: Asked[None, Yes]) -> Response:
    """Allow a call exactly as it was shown."""
    said, call_id = asked.body, asked.part("call")
    return await _say(asked, await run_of(asked), Approve(((call_id, said.digest),), asked.token.name, said.note))


async def deny(asked: Asked[None, No]) -> Response:
    """Refuse a call."""
    said, call_id = asked.body, asked.part("call")
    return await _say(asked, await run_of(asked), Refuse(((call_id, said.digest),), asked.token.name, said.reason))


async def settle(asked: Asked[None, Settled]) -> Response:
    """Say what became of a call in doubt."""
    said, name = asked.body, asked.token.name
    word = Settle(asked.part("call"), said.outcome, name, said.result, said.digest)
    return await _say(asked, await run_of(asked), word)


async def sign(asked: Asked[None, Signature]) -> Response:
    """Sign or refuse a plan."""
    said = asked.body
    return await _say(asked, await run_of(asked), Sign(said.version, said.verdict, asked.token.name, said.reason))


async def note(asked: Asked[None, Said]) -> Response:
    """Say something more to a run, as its user."""
    if asked.token.speaks_as != "person":
        raise Problem("forbidden", "a note counts as the user's own words, and this token speaks for no person")
    return await _say(asked, await run_of(asked), Note(asked.body.text, asked.token.name))


async def cancel(asked: Asked[None, Ended]) -> Response:
    """End a run; with the right to start alone, only one that the same token has started."""
    run = await cancellable(asked)
    return await _say(asked, run, Cancel(asked.token.name, asked.body.reason))


async def cancellable(asked: Asked[Any, Any], run_id: str = "") -> RunSummary:
    """The run that a request would end. Raises `Problem` where its token may not."""
    run, token = await run_of(asked, run_id), asked.token
    is_own = "start" in token.rights and run.labels.get(STARTED_BY) == token.name
    if "cancel" not in token.rights and not is_own:
        raise Problem("forbidden", "cancelling a run that another token started needs the right `cancel`")
    return run


async def resume(asked: Asked[None, GoOn]) -> Response:
    """Go on with a run: whoever drives runs of its agent does."""
    run, limits = await run_of(asked), asked.body.limits
    if run.status == "completed":
        check_reads(asked, run)
        return answer(run_json(run))
    agent = asked.site.agents.get(run.agent)
    if agent is None:
        raise Problem("agent_unknown", f"the agent of this run, {visible(run.agent)!r}, is not served here")
    tale = None if limits == Tighter() else await asked.site.library.tale(Reading(asked.site.store, run.run_id))
    config = tightened(agent, tale.state.config, limits) if tale is not None else None
    posted, is_replayed = await _post(asked, run, Resume(asked.token.name, config))
    return _later(run, posted, is_replayed=is_replayed)


async def show_word(asked: Asked[None, None]) -> Response:
    """Say what came of a word."""
    run, number = await run_of(asked), asked.part("number")
    try:
        posted = await asked.site.store.posted(run.run_id, int(number))
    except (ValueError, OverflowError, UsageError) as error:
        raise Problem("no_such_word", f"run {visible(run.run_id)} has no word {visible(number)}") from error
    told = {"number": posted.number, "outcome": posted.outcome, "detail": visible(posted.detail)}
    seq = posted.seq if posted.seq >= 0 else None
    return answer({**told, "seq": seq, "word": orjson.loads(dumped(posted.word))})


async def _say(asked: Asked[Any, Any], run: RunSummary, word: Word) -> Response:
    posted, is_replayed = await wait_until_heard(asked, run, word)
    if not posted.outcome:
        return _later(run, posted, is_replayed=is_replayed)
    store = asked.site.store
    records, _ = await store.read_recorded(run.run_id, posted.seq, 1) if posted.seq >= 0 else ((), "")
    event = orjson.loads(encode(records[0].event)[0].decode("utf-8", "replace")) if records else None
    told = {"number": posted.number, "outcome": posted.outcome, "seq": posted.seq, "event": event}
    return answer(told, is_replayed=is_replayed)


async def wait_until_heard(asked: Asked[Any, Any], run: RunSummary, word: Word) -> tuple[Posted, bool]:
    """The word once the run has heard it, or after a moment, and whether it was said before under this key.

    Raises `Problem` for one that does not count.
    """
    posted, is_replayed = await _post(asked, run, word)
    if not posted.outcome:
        posted = await speak(asked.site.store, run.run_id, word, key=posted.key, wait_s=asked.site.limits.word_s)
    if posted.outcome not in ("", "applied"):
        problem = Problem(posted.outcome, visible(posted.detail))
        if posted.outcome == "changed":
            waiting = await asked.site.library.waiting(run, Reading(asked.site.store, run.run_id))
            about = {call_id for call_id, _ in word.calls} if isinstance(word, Approve | Refuse) else set[str]()
            now = (one for one in waiting if one.call in about or (not about and one.about == "plan"))
            problem.fields["question"] = next(now, None)
        raise problem
    return posted, is_replayed


async def _post(asked: Asked[Any, Any], run: RunSummary, word: Word) -> tuple[Posted, bool]:
    """The word in the inbox, and whether it was there before under this key. Raises `Problem` for a reused one.

    Without a key it has one of its own, so that it counts once, whoever goes on with it here.
    """
    try:
        posted = await asked.site.store.say(run.run_id, word, key=asked.key or token_hex(16))
    except UsageError as error:
        raise Problem("key_reused", "this Idempotency-Key was used for another word") from error
    asked.site.stir()
    return posted, bool(asked.key) and bool(posted.outcome)


def _later(run: RunSummary, posted: Posted, *, is_replayed: bool) -> Response:
    location = {"Location": f"/v1/runs/{run.run_id}/words/{posted.number}"}
    told = {"number": posted.number, "outcome": posted.outcome}
    return answer(told, 202, location, is_replayed=is_replayed)

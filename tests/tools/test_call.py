"""Calls that are made again after failures of infrastructure, and which failures those are."""

import asyncio
import urllib.error
from collections.abc import Coroutine, Iterable
from email.message import Message

import pytest

from surefoot.tools.call import FIRST_WAIT_S, ToolFailed, called_within, failure, retry
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio

DOWN = ToolResult("down", "error", infrastructure=True)
WRONG = ToolResult("wrong", "error")
DONE = ToolResult("done")


class Clock:
    def __init__(self) -> None:
        self.now_s, self.waits = 0.0, list[float]()

    async def sleep(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        self.now_s += wait_s


async def made(results: Iterable[ToolResult], limit_s: float = 60.0) -> tuple[ToolResult, list[float], int]:
    clock, left, calls = Clock(), iter(results), list[int]()

    async def call() -> ToolResult:
        calls.append(1)
        return next(left)

    result = await retry(call, limit_s, clock=lambda: clock.now_s, sleep=clock.sleep)
    return result, clock.waits, len(calls)


async def test_a_failure_of_infrastructure_is_tried_again_twice_and_any_other_outcome_stands() -> None:
    assert await made([DOWN, DONE]) == (DONE, [FIRST_WAIT_S], 2)
    assert await made([DOWN, WRONG]) == (WRONG, [FIRST_WAIT_S], 2)
    assert await made([DOWN, DOWN, DOWN]) == (DOWN, [FIRST_WAIT_S, 2 * FIRST_WAIT_S], 3)
    assert await made([WRONG]) == (WRONG, [], 1)


async def test_it_waits_as_long_as_it_is_asked_to_unless_that_is_too_long() -> None:
    busy = ToolResult("busy", "error", infrastructure=True, retry_after_s=7)
    assert await made([busy, DONE]) == (DONE, [7], 2)
    assert await made([busy, busy, DONE], limit_s=10) == (busy, [7], 2)
    assert await made([DOWN], limit_s=FIRST_WAIT_S) == (DOWN, [], 1)


class Response:
    def __init__(self, status: int) -> None:
        self.status_code, self.headers = status, {"Retry-After": "3"}


class ClientError(Exception):
    """As the usual clients raise it."""

    def __init__(self, *, status_code: object = None, code: object = None, response: Response | None = None) -> None:
        super().__init__("it failed")
        self.status_code, self.code, self.response = status_code, code, response


class Hostile(Exception):
    @property
    def status_code(self) -> int:
        raise RuntimeError("never ask")


def http_error(status: int, wait: str) -> urllib.error.HTTPError:
    headers = Message()
    headers["Retry-After"] = wait
    return urllib.error.HTTPError("http://localhost/", status, "busy", headers, None)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503, 599])
def test_a_status_of_overload_is_infrastructure_however_it_is_told(status: int) -> None:
    for error in (ClientError(status_code=status), ClientError(code=status), ClientError(response=Response(status))):
        assert failure(error).infrastructure


@pytest.mark.parametrize("error", [
    ClientError(status_code=404), ClientError(code="503"), ClientError(response=Response(401)), Hostile(),
    urllib.error.URLError("unknown url type"), urllib.error.URLError(FileNotFoundError(2, "no such file")),
    ToolFailed("503"),
])  # fmt: skip
def test_any_other_error_is_the_calls_own(error: Exception) -> None:
    assert not failure(error).infrastructure


def test_what_a_client_wraps_is_asked_too() -> None:
    assert failure(urllib.error.URLError(ConnectionRefusedError(111, "refused"))).infrastructure
    wrapped = RuntimeError("it failed")
    wrapped.__cause__ = ClientError(status_code=503)
    assert failure(wrapped).infrastructure


def test_what_the_server_asks_for_is_read() -> None:
    for error, wait_s in ((http_error(503, "5"), 5), (ClientError(response=Response(429)), 3)):
        result = failure(error)
        assert result.retry_after_s == wait_s
    for odd in ("-1", "soon", "1e9", "Wed, 21 Oct 2026 07:28:00 GMT"):
        assert failure(http_error(503, odd)).retry_after_s is None


def test_a_call_that_outlives_its_loop_is_closed_without_an_error() -> None:
    async def begun() -> Coroutine[object, None, object]:
        call = called_within(asyncio.sleep, {"delay": 60}, "nap", 0.0)
        call.send(None)
        return call

    asyncio.run(begun()).close()

"""`github_issue` and `github_pull_request`: what the GitHub API tells of a number, as text.

They take a reference as a person writes it, so that pre-hydration can name them as resolvers. Requests go by the rules
of `web_fetch`, the token to the origin of the base URL alone. Source: spec/primitives.md, 3.1, 3.2, 3.5 and 3.6.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from surefoot.core.text import at, clean, shortened
from surefoot.core.text.json import as_list, as_object
from surefoot.tools import web
from surefoot.tools.call import ToolFailed, call_function, code_of, failure
from surefoot.tools.function import tool
from surefoot.tools.page import MAX_WIRE_BYTES
from surefoot.types.errors import ConfigError
from surefoot.types.ports import Tool
from surefoot.types.tools import ToolResult

if TYPE_CHECKING:
    from yarl import URL

MOST_CHARS = 20_000  # characters of a result
MOST_COMMENTS = 10  # comments of a result: the first ones
_MOST_OF_TEXT, _MOST_OF_COMMENT, _MOST_OF_LINE = 12_000, 2_000, 500
_CUT = " [cut: {} characters in all]"

_OWNER, _NAME = r"[A-Za-z0-9][A-Za-z0-9_\-]{0,99}", r"(?!\.{1,2}(?:#|\Z))[A-Za-z0-9_.\-]{1,100}"
_REPOSITORY = re.compile(rf"{_OWNER}/{_NAME}")
_REFERENCE = re.compile(
    rf"(?:(?P<repository>{_OWNER}/{_NAME})#|(?i:PR|pull\s{{1,8}}request)\s{{0,8}}#?|GH-|#)?(?P<number>[0-9]{{1,7}})"
)
_TOKEN = re.compile(r"[\x21-\x7e]+")
_SECONDS = re.compile(r"[0-9]{1,11}")

_ISSUE, _PULL = "issue", "pull request"
_PATHS = {_ISSUE: "issues", _PULL: "pulls"}


def github_tools(
    repository: str,
    *,
    token: str = "",
    base_url: str = "https://api.github.com",
    timeout_s: float = 20.0,
    resolve: web.Resolve = web.system_resolve,
) -> tuple[Tool, Tool]:
    """The tools `github_issue` and `github_pull_request`; a number without a repository is one of `repository`.

    A reference such as `owner/name#3` reads from any repository that `token` may read. The server must have a public
    address, or `base_url` must name its port, as in `http://localhost:3000`. `timeout_s` bounds a call with all its
    requests. A token goes over https, or to this machine. Raises `ConfigError`; no message holds the token.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigError("repository", repository, "give owner/name")
    if token and not _TOKEN.fullmatch(token):
        raise ConfigError("token", "(not shown)", "a token has no white space and nothing but ASCII")
    try:
        base = web.parsed_url(base_url, None)
    except ToolFailed:
        base = None
    if base is None or not base.path or base.query_string or base.fragment:
        shown, wanted = "(not shown)" if "@" in base_url else base_url, "without user, password, query, fragment"
        raise ConfigError("base_url", shown, f"give http:// or https:// and a host, {wanted}")
    if token and base.scheme != "https" and not web.is_this_machine(web.plain_host(base.raw_host or "")):
        raise ConfigError("base_url", base_url, "a token goes over https only, or to this machine; write https://")
    allowed = frozenset({web.allowed_host(base.raw_authority)} if base.explicit_port else ())
    api = _Api(repository, base, allowed, resolve, token, timeout_s)

    def reader_of(kind: str) -> Tool:
        told = f"Read one {kind} of {repository} on GitHub: its state, text and first comments."

        @tool(effect="read", name=f"github_{kind.replace(' ', '_')}", timeout_s=timeout_s + 1, description=told)
        async def look(number: str) -> ToolResult:
            """Read it.

            Args:
                number: Its number. For another repository, put its owner, a slash, its name and # before.
            """
            return await api.result(kind, number)

        return look

    return reader_of(_ISSUE), reader_of(_PULL)


@dataclass(frozen=True, slots=True)
class _Api:
    """One server and what is asked of it."""

    repository: str
    base: URL
    allowed: frozenset[tuple[str, int]]
    resolve: web.Resolve
    token: str = field(repr=False)
    timeout_s: float

    async def result(self, kind: str, reference: str) -> ToolResult:
        """The text of an issue or pull request, or what went wrong; the token in neither."""
        try:
            async with asyncio.timeout(self.timeout_s):
                text, source = await self._fetch_item(kind, reference)
        except TimeoutError:
            return ToolResult(f"No complete answer within {self.timeout_s:g} s.", kind="timeout", infrastructure=True)
        except ToolFailed as error:
            told = self._without_token(str(error))
            return failure(ToolFailed(told, infrastructure=error.infrastructure, code=error.code))
        return ToolResult(text, source=self._without_token(source))

    async def _fetch_item(self, kind: str, reference: str) -> tuple[str, str]:
        if (found := _REFERENCE.fullmatch(reference.strip())) is None:
            raise ToolFailed(f"{reference[:100]!r} is not the number of a GitHub {kind}. Give the number alone.")
        repository, number = found["repository"] or self.repository, int(found["number"])
        what = f"{kind} {repository}#{number}"
        item, source = await self._read(f"repos/{repository}/{_PATHS[kind]}/{number}", what)
        if not isinstance(at(item, "title"), str):
            why = f"{self.base.host} did not answer with JSON of GitHub for {what}. Is base_url a GitHub API?"
            raise ToolFailed(why)
        state = _line(at(item, "state")) or "unknown"
        if at(item, "merged") is True:
            state = "merged"
        elif at(item, "draft") is True:
            state += ", draft"
        names = (
            _line(label if isinstance(label, str) else at(label, "name")) for label in as_list(at(item, "labels")) or ()
        )
        lines = [
            f"{what[0].upper()}{what[1:]}: {_line(at(item, 'title'))}",
            *(["It is a pull request."] if isinstance(at(item, "pull_request"), dict) else []),
            f"State: {state}",
            f"Author: {_line(at(item, 'user', 'login')) or 'unknown'}",
            f"Labels: {_line(', '.join(filter(None, names))) or 'none'}",
        ]
        parts, count = ["\n".join(lines), _text(item, _MOST_OF_TEXT) or "(no text)"], at(item, "comments")
        try:
            path, own = f"repos/{repository}/issues/{number}/comments", f"comments of {what}"
            comments = await self._read(path, own, per_page=MOST_COMMENTS) if count != 0 else (None, "")
            rows = [one for one in (as_list(comments[0]) or [])[:MOST_COMMENTS] if as_object(one) is not None]
            is_part = isinstance(count, int) and count > len(rows)
            told = f"Comments: the first {len(rows)} of {count}" if is_part else f"Comments: {len(rows)}"
            parts += [told] if rows else []
            for row in rows:
                by, when = _line(at(row, "user", "login")) or "unknown", _line(at(row, "created_at"))
                parts.append(f"Comment by {by}, {when or 'at an unknown time'}:\n{_text(row, _MOST_OF_COMMENT)}")
        except ToolFailed as error:  # the text is worth having without them
            parts.append(f"(its comments could not be read: {self._without_token(str(error))})")
        return shortened("\n\n".join(parts), MOST_CHARS, _CUT), source

    async def _read(self, path: str, what: str, **query: int) -> tuple[object, str]:
        """The JSON under a path, and the address it came from. Raises `ToolFailed`."""
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        answer = await web.get((self.base / path).with_query(query), self.allowed, self.resolve, headers)
        if answer.body.is_cut:
            raise ToolFailed(f"{answer.url.host} answered with more than {MAX_WIRE_BYTES} bytes.")
        if not answer.is_success:
            raise _refused(answer, what, has_token=bool(self.token))
        data = answer.body.data.replace(self.token.encode(), b"[token]") if self.token else answer.body.data
        try:
            return await call_function(json.loads, {"s": data}, on_loop=False), str(answer.url)
        except (ValueError, RecursionError):
            fault = ToolFailed(f"{self.base.host} did not answer with JSON for {what}. Is base_url a GitHub API?")
        raise fault  # out here the error with the whole text does not cling to it

    def _without_token(self, text: str) -> str:
        return text.replace(self.token, "[token]") if self.token else text


def _refused(answer: web.Answer, what: str, *, has_token: bool) -> ToolFailed:
    """What an answer without success means, by GitHub's own account of its statuses."""
    seen = "with this token" if has_token else "without a token"
    after, reset = answer.headers.get("Retry-After", ""), answer.headers.get("X-RateLimit-Reset", "")
    limit = ""  # when to ask again, if the refusal has to do with a rate limit
    if _SECONDS.fullmatch(after):
        limit = f"ask again in {int(after)} s"
    elif answer.headers.get("X-RateLimit-Remaining") == "0" and _SECONDS.fullmatch(reset):
        limit = f"it resets at {datetime.fromtimestamp(int(reset), UTC):%Y-%m-%d %H:%M:%S} UTC"
    elif answer.status == 429 or b"rate limit" in answer.body.data.lower():  # noqa: PLR2004  # Too Many Requests
        limit = "ask again in a minute"
    match answer.status:
        case 403 | 429 if limit:
            told = f"The rate limit of {answer.url.host} is reached {seen}: {limit}."
            return ToolFailed(told, infrastructure=True, code="transient:429")
        case 401 if has_token:
            return ToolFailed(f"{answer.url.host} does not accept the token for {what}.")
        case 401 | 403:
            return ToolFailed(f"The {what} may not be read {seen}.")
        case 404 | 410:
            return ToolFailed(f"There is no {what}, or it may not be read {seen}.", code="parameter:404")
        case status:
            overloaded = status >= 500 or status == 408  # noqa: PLR2004
            told = f"{answer.url.host} answered {status} for {what}."
            return ToolFailed(told, infrastructure=overloaded, code=code_of(status))


def _line(value: object) -> str:
    """On one line, so that no title or name can pass for a line of ours."""
    return shortened(" ".join(_plain(value).split()), _MOST_OF_LINE, _CUT)


def _text(item: object, most: int) -> str:
    return shortened(_plain(at(item, "body")).strip(), most, _CUT)


def _plain(value: object) -> str:
    """Text that can be written as UTF-8 and holds no NUL; "" for what is not text."""
    if not isinstance(value, str):
        return ""
    return clean(value.replace("\r\n", "\n").replace("\0", ""))

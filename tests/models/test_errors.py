"""What errors of servers mean. The errors themselves are data: `model_errors.jsonl`, and `refusals.jsonl` by wire."""

import json
import time
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import pytest
from wires import WIRES

from cases import cases
from surefoot.models.errors import Endpoint, complaint_of, error_of, finds, retry_after_of
from surefoot.models.json_edge import mapping
from surefoot.types.errors import ModelError, ModelRefused, TraitRefused

DATA = Path(__file__).parent.parent / "data"
KEY = "my-own-secret"
ENDPOINT = Endpoint("m", "http://h/v1", "OPENAI_API_KEY", KEY)


def rows(name: str) -> list[Any]:  # JSON
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


BODIES: dict[str, dict[str, object]] = dict(rows("models/sent.jsonl"))
"""What was sent, by wire, of what an error may complain of."""
SENT = BODIES["openai_chat"]


def judged(
    status: int,
    raw: bytes | str,
    sent: Mapping[str, object] = SENT,
    traits: Mapping[str, str] | None = None,
    wire: str = "openai_chat",
) -> ModelError:
    told = complaint_of(status, raw if isinstance(raw, bytes) else raw.encode(), None, ENDPOINT)
    spoken = WIRES[wire].wire("m")
    about = (told.message, told.code, told.param, dict(sent), traits or {})
    return error_of(told, ENDPOINT, lambda: spoken.refused(*about))


def words(message: str, **fields: object) -> bytes:
    return orjson.dumps({"error": {"message": message, **fields}})


def learnt(error: ModelError) -> tuple[str, str] | None:
    return (error.trait, error.value) if isinstance(error, TraitRefused) else None


def test_refused_parts_become_traits() -> None:
    for row in rows("refusals.jsonl"):
        case = (row["status"], row["body"], BODIES[row["wire"]])
        wire, taught = row["wire"].partition(" ")[0], row["learnt"] and tuple(row["learnt"])
        error = judged(*case, wire=wire)
        assert learnt(error) == taught, row
        if isinstance(error, TraitRefused):
            assert error.evidence
            # what is known already explains nothing
            assert learnt(judged(*case, traits={error.trait: error.value}, wire=wire)) != taught, row
        else:
            assert (type(error), error.kind) == (ModelRefused, "bad_request"), row


def test_kinds() -> None:
    for row in rows("model_errors.jsonl"):
        error = judged(row["status"], row["body"])
        assert (type(error).__name__, error.kind, error.retry_after_s) == (
            row["error"],
            row["kind"],
            row.get("wait_s"),
        ), row


def test_every_pattern_compiles_and_every_part_has_a_name() -> None:
    data = mapping(tomllib.loads((files("surefoot") / "data" / "refusals.toml").read_text(encoding="utf-8")))
    keys = [f"{group}.{name}" for group in ("kinds", "names") for name in mapping(data[group])]
    for wire in WIRES:
        words, parts = (mapping(mapping(data[wire])[inner]) for inner in ("words", "parts"))
        keys += [f"{wire}.words.{name}" for name in words]
        keys += [
            f"{wire}.parts.{trait}.names" if "names" in mapping(part) else f"names.{trait}"
            for trait, part in parts.items()
        ]
    assert len(keys) > 40
    assert [key for key in keys if finds(key, "")] == []  # one that fits nothing at all fits everything


@pytest.mark.parametrize(
    "message",
    ["m does not support tools", "'temperature' is not supported", "stop is not supported", "System role not supported",
     "response_format is not supported", "content must be a string", "Unknown parameter: 'max_tokens'"],
)  # fmt: skip
def test_only_what_was_sent_can_be_refused(message: str) -> None:
    error = judged(400, words(message), {"model": "m", "messages": [{"role": "user", "content": "q"}]})
    assert (type(error), error.kind) == (ModelRefused, "bad_request")


def test_a_template_without_system_role_says_it_in_other_words() -> None:
    error = judged(400, words("Conversation roles must alternate"), traits={"alternation": "yes"})
    assert learnt(error) == ("system_role", "no")


def test_token_fields_are_tried_one_by_one() -> None:
    case = (400, words("Unknown parameter: 'max_completion_tokens'"), {"max_completion_tokens": 5})
    assert learnt(judged(*case)) == ("max_tokens_field", "max_tokens")
    assert learnt(judged(*case, {"max_tokens_field": "max_completion_tokens"})) == ("max_tokens_field", "no")


def test_messages_name_the_thing_and_the_remedy() -> None:
    assert "OPENAI_API_KEY" in str(judged(401, words("no")))
    assert "http://h/v1" in str(judged(404, b""))
    assert "'m'" in str(judged(404, b""))
    told = complaint_of(401, words("no"), None, ENDPOINT)
    said = str(error_of(told, Endpoint("m", "http://h/v1", "OLLAMA_API_KEY"), lambda: None))
    assert "asks for a key, and none was sent" in said
    assert said.endswith("set OLLAMA_API_KEY")


def test_pages_are_cut_to_their_words() -> None:
    page = "<html><head><title>t</title><style>b{}</style></head><body><h1>Bad</h1>\n<p>gateway</p></body></html>"
    assert "Bad gateway (HTTP 502)" in str(judged(502, page))
    assert len(str(judged(502, "x" * 9999))) < 600


def test_keys_that_a_server_echoes_are_taken_out() -> None:
    said = str(judged(401, words(f"Incorrect key {KEY} or sk-proj-ab12cd34ef56 or Bearer abc.def")))
    assert not any(secret in said for secret in (KEY, "ab12", "abc.def"))
    assert KEY not in repr(ENDPOINT)


@cases("models/errors")
def test_retry_after(
    milliseconds: str | None, header: str | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")  # a date without a zone is not in that of this machine
        time.tzset()
        seconds = retry_after_of(milliseconds, header, now=30.0)
    time.tzset()
    assert seconds == expected

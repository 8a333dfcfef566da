import time

import orjson
import pytest

from surefoot.models.endpoint_errors import Endpoint, complaint_of, error_of, retry_after_of
from surefoot.models.openai_refusals import refused_trait
from surefoot.types.errors import ModelError, ModelRefused, ModelUnreachable, TraitRefused

KEY = "my-own-secret"
ENDPOINT = Endpoint("m", "http://h/v1", "OPENAI_API_KEY", KEY)
SENT: dict[str, object] = {
    "model": "m", "tools": [], "stop": ["x"], "temperature": 0, "top_p": 1, "seed": 0, "max_tokens": 5,
    "response_format": {}, "stream_options": {}, "parallel_tool_calls": False, "reasoning_effort": "low",
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"},
                 {"role": "assistant", "content": None, "tool_calls": [{}]}, {"role": "tool", "content": "r"}],
}  # fmt: skip


def judged(
    status: int,
    raw: bytes | str,
    sent: dict[str, object] = SENT,
    traits: dict[str, str] | None = None,
) -> ModelError:
    raw = raw if isinstance(raw, bytes) else raw.encode()
    told = complaint_of(status, raw, None, ENDPOINT)
    return error_of(told, ENDPOINT, lambda: refused_trait(told.message, told.code, told.param, sent, traits or {}))


def words(message: str, **fields: object) -> bytes:
    return orjson.dumps({"error": {"message": message, **fields}})


@pytest.mark.parametrize(
    ("status", "raw", "trait", "value"),
    [
        (400, words("registry.ollama.ai/library/codellama:latest does not support tools"), "native_tools", "no"),
        (400, b'{"error":"stablelm2 does not support tools"}', "native_tools", "no"),
        (404, words("No endpoints found that support tool use."), "native_tools", "no"),
        (404, words("Unrecognized request argument supplied: tools"), "native_tools", "no"),
        (400, words("tools is not supported in this model. For a list of supported models, see"), "native_tools", "no"),
        (400, words("`tool calling` is not supported with this model"), "native_tools", "no"),
        (400, words("Function calling is not enabled for models/gemma-3"), "native_tools", "no"),
        (
            400,
            words('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', code=400),
            "native_tools",
            "no",
        ),
        (500, words("tools param requires --jinja flag", code=500), "native_tools", "no"),
        (500, words("Unsupported param: tools", code=500), "native_tools", "no"),
        (
            400,
            words(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                code="unsupported_parameter",
                param="max_tokens",
            ),
            "max_tokens_field",
            "max_completion_tokens",
        ),
        (400, words("Extra inputs are not permitted: max_tokens"), "max_tokens_field", "max_completion_tokens"),
        (
            400,
            words(
                "Unsupported value: 'temperature' does not support 0 with this model. "
                "Only the default (1) value is supported.",
                code="unsupported_value",
                param="temperature",
            ),
            "temperature",
            "no",
        ),
        (400, words("Unsupported parameter: 'stop' is not supported with this model."), "stop", "no"),
        (400, words("stop sequences are not supported"), "stop", "no"),
        (422, b'{"detail":"unexpected field: seed"}', "seed", "no"),
        (400, words("Unknown parameter: 'top_p'"), "top_p", "no"),
        (400, words("reasoning_effort is not supported by this model"), "reasoning_effort", "no"),
        (400, words("Unrecognized request argument supplied: stream_options"), "stream_usage", "no"),
        (
            400,
            b'[{"error":{"code":400,"message":"Unknown name \\"parallel_tool_calls\\": Cannot find field."}}]',
            "parallel_calls",
            "no",
        ),
        (400, words("This response_format type is unavailable now"), "json_schema", "no"),
        (
            400,
            words("Invalid schema for response_format 'step'", param="response_format", code="invalid_json_schema"),
            "json_schema",
            "no",
        ),
        (
            400,
            words("Conversation roles must alternate user/assistant/user/assistant/..."),
            "alternation",
            "yes",
        ),
        (500, words("Jinja Exception: After the optional system message, conversation roles must alternate"),
         "alternation", "yes"),
        (400, words("System role not supported"), "system_role", "no"),
        (400, words("Only user, assistant and tool roles are supported, got system."), "system_role", "no"),
        (
            400,
            words(
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                param="messages[0].role",
                code="unsupported_value",
            ),
            "system_role",
            "no",
        ),
        (400, words("Developer instruction is not enabled for models/gemma-3"), "system_role", "no"),
        (
            400,
            words("Invalid value for 'content': expected a string, got null.", param="messages.[2].content"),
            "null_content",
            "empty",
        ),
        (422, words("content must be a string"), "null_content", "empty"),
        (400, words("Missing `reasoning_content` in the assistant message"), "reasoning_echo", "reasoning_content"),
    ],
)  # fmt: skip
def test_refused_parts_become_traits(status: int, raw: bytes, trait: str, value: str) -> None:
    error = judged(status, raw)
    assert isinstance(error, TraitRefused), error
    assert (error.trait, error.value) == (trait, value)
    assert error.evidence
    known = judged(status, raw, traits={trait: value})  # what is known already explains nothing
    assert not (isinstance(known, TraitRefused) and (known.trait, known.value) == (trait, value))


@pytest.mark.parametrize(
    "message",
    ["m does not support tools", "'temperature' is not supported", "stop is not supported", "System role not supported",
     "response_format is not supported", "content must be a string", "Unknown parameter: 'max_tokens'"],
)  # fmt: skip
def test_only_what_was_sent_can_be_refused(message: str) -> None:
    error = judged(400, words(message), {"model": "m", "messages": [{"role": "user", "content": "q"}]})
    assert isinstance(error, ModelRefused)
    assert error.kind == "bad_request"


def test_a_template_without_system_role_says_it_in_other_words() -> None:
    error = judged(400, words("Conversation roles must alternate"), traits={"alternation": "yes"})
    assert isinstance(error, TraitRefused)
    assert (error.trait, error.value) == ("system_role", "no")


def test_token_fields_are_tried_one_by_one() -> None:
    sent: dict[str, object] = {"max_completion_tokens": 5}
    unknown = words("Unknown parameter: 'max_completion_tokens'")
    first = judged(400, unknown, sent)
    assert isinstance(first, TraitRefused)
    assert first.value == "max_tokens"
    last = judged(400, unknown, sent, {"max_tokens_field": "max_completion_tokens"})
    assert isinstance(last, TraitRefused)
    assert last.value == "no"


@pytest.mark.parametrize(
    "raw",
    [
        words("Invalid 'tools[0].function.name': string does not match pattern", param="tools[0].function.name"),
        words("Invalid parameter: messages with role 'tool' must follow 'tool_calls'", param="messages.[3].role"),
        words("Invalid schema for function 'f': 'x' is not permitted", param="tools[0].function.parameters"),
        words("bad request"),
        b"",
    ],
)
def test_errors_about_something_else_teach_nothing(raw: bytes) -> None:
    error = judged(400, raw)
    assert isinstance(error, ModelRefused)
    assert error.kind == "bad_request"


@pytest.mark.parametrize(
    ("status", "raw", "cls", "kind"),
    [
        (401, words("Incorrect API key"), ModelRefused, "auth"),
        (403, words("forbidden"), ModelRefused, "auth"),
        (402, words("Insufficient Balance"), ModelRefused, "auth"),
        (429, words("You exceeded your current quota", code="insufficient_quota"), ModelRefused, "auth"),
        (404, words("The model `m` does not exist", code="model_not_found"), ModelRefused, "bad_request"),
        (405, b"", ModelRefused, "bad_request"),
        (307, b"", ModelRefused, "bad_request"),
        (413, b"too large", ModelRefused, "context_overflow"),
        (400, words("too long", code="context_length_exceeded"), ModelRefused, "context_overflow"),
        (400, words("This model's maximum context length is 8192 tokens."), ModelRefused, "context_overflow"),
        (400, words("the request exceeds the available context size", type="exceed_context_size_error"),
         ModelRefused, "context_overflow"),
        (400, words("blocked", code="content_filter"), ModelRefused, "refused"),
        (400, words("x", code="data_inspection_failed"), ModelRefused, "refused"),
        (408, b"", ModelUnreachable, "unavailable"),
        (409, b"", ModelUnreachable, "unavailable"),
        (429, words("slow down", code="rate_limit_exceeded"), ModelUnreachable, "rate_limited"),
        (500, words("oops"), ModelUnreachable, "unavailable"),
        (503, b"<html>", ModelUnreachable, "unavailable"),
        (529, words("overloaded"), ModelUnreachable, "unavailable"),
        (200, words("slow", code=429), ModelUnreachable, "rate_limited"),
        (200, words("Provider returned error", code=502), ModelUnreachable, "unavailable"),
        (200, words("who knows"), ModelUnreachable, "unavailable"),
        (200, words("bad", type="invalid_request_error"), ModelRefused, "bad_request"),
        (200, words("no", code="moderated"), ModelRefused, "bad_request"),
        (200, words("slow", code="rate_limit_exceeded"), ModelUnreachable, "rate_limited"),
        (200, words("slow", type="RateLimitError"), ModelUnreachable, "rate_limited"),
    ],
)  # fmt: skip
def test_kinds(status: int, raw: bytes, cls: type[ModelError], kind: str) -> None:
    error = judged(status, raw)
    assert (type(error), error.kind) == (cls, kind), error


def test_messages_name_the_thing_and_the_remedy() -> None:
    assert "OPENAI_API_KEY" in str(judged(401, words("no")))
    assert "http://h/v1" in str(judged(404, b""))
    assert "'m'" in str(judged(404, b""))


def test_pages_are_cut_to_their_words() -> None:
    page = "<html><head><title>t</title><style>b{}</style></head><body><h1>Bad</h1>\n<p>gateway</p></body></html>"
    assert "Bad gateway (HTTP 502)" in str(judged(502, page))
    assert len(str(judged(502, "x" * 9999))) < 600


def test_keys_that_a_server_echoes_are_taken_out() -> None:
    said = str(judged(401, words(f"Incorrect key {KEY} or sk-proj-ab12cd34ef56 or Bearer abc.def")))
    assert KEY not in said
    assert "ab12" not in said
    assert "abc.def" not in said
    assert KEY not in repr(ENDPOINT)


@pytest.mark.parametrize(
    ("milliseconds", "header", "expected"),
    [
        ("1500", "9", 1.5),
        (None, "9", 9.0),
        (None, "0.25", 0.25),
        (None, "Thu, 01 Jan 1970 00:01:40 GMT", 70.0),
        (None, "Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        (None, "Thursday, 01-Jan-70 00:01:40 GMT", 70.0),
        (None, "Thu Jan  1 00:01:40 1970", 70.0),
        (None, "Thu, 01 Jan 1970 01:01:40 +0100", 70.0),
        ("soon", "9", 9.0),
        (None, "soon", None),
        (None, None, None),
    ],
)
def test_retry_after(
    milliseconds: str | None, header: str | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")  # a date without a zone is not in that of this machine
        time.tzset()
        seconds = retry_after_of(milliseconds, header, now=30.0)
    time.tzset()
    assert seconds == expected


def test_a_key_that_was_not_sent_is_asked_for() -> None:
    told = complaint_of(401, words("no"), None, ENDPOINT)
    said = str(error_of(told, Endpoint("m", "http://h/v1", "OLLAMA_API_KEY"), lambda: None))
    assert "asks for a key, and none was sent" in said
    assert said.endswith("set OLLAMA_API_KEY")

"""The names of OpenTelemetry's conventions for generative AI, of one release. No other module spells them.

All of them are in state *Development*, so they change; a change here is a line in the change log. Source:
github.com/open-telemetry/semantic-conventions-genai, v0.1.0.
"""

from __future__ import annotations

from collections.abc import Mapping

SCOPE = "surefoot"
SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai/0.1.0"

CHAT, EXECUTE_TOOL, INVOKE_AGENT, PLAN = "chat", "execute_tool", "invoke_agent", "plan"
"""The operations, with which the names of their spans begin."""

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT_VALUES = ("true", "span_only", "span_and_event")
"""The variable with which content is asked for, and what says yes to spans that have it."""

DURATIONS: Mapping[str, str] = {
    CHAT: "gen_ai.client.inference.duration",
    EXECUTE_TOOL: "gen_ai.execute_tool.duration",
    INVOKE_AGENT: "gen_ai.invoke_agent.duration",
}
"""The histogram, in seconds, of an operation."""

TOKENS: Mapping[str, str] = {
    INPUT_TOKENS: "gen_ai.client.inference.usage.input_tokens",
    OUTPUT_TOKENS: "gen_ai.client.inference.usage.output_tokens",
    CACHE_READ_TOKENS: "gen_ai.client.inference.usage.cache_read.input_tokens",
    CACHE_WRITE_TOKENS: "gen_ai.client.inference.usage.cache_creation.input_tokens",
    REASONING_TOKENS: "gen_ai.client.inference.usage.reasoning.output_tokens",
}
"""The counter of the tokens that a span tells."""

MODALITY = "gen_ai.token.modality"

PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "openai-responses": "openai",
    "xai": "x_ai",
}
"""What the conventions call a provider whose name is another here."""

"""Which optional parameters an endpoint takes, learned from its own refusals.

Pure. An endpoint that does not know a parameter says so in a 400 or 422: the transport leaves the parameter
out (or calls it by its newer name), sends again, and keeps the lesson for every later request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plaudit.transports.complaint import Complaint, is_about_length

_UNKNOWN = (
    "unsupported",
    "not support",
    "n't support",
    "not available",
    "unavailable",
    "unknown",
    "unrecognized",
    "unrecognised",
    "unexpected",
    "extra inputs",
    "extra fields",
    "extra_forbidden",
    "not permitted",
    "not allowed",
    "not implemented",
    "not enabled",
    "cannot unmarshal",
    "no such parameter",
    "invalid parameter",
)
_SCHEMA_NAMES = ("response_format", "json_schema", "request.format", "guided", "structured output")


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters that requests to one endpoint carry. It starts with all of them."""

    limit_name: str = "max_tokens"
    """What the limit on the reply's length is called; newer OpenAI models want `max_completion_tokens`."""
    has_schema: bool = True
    """Without it, the reply's format is asked for by the prompt alone."""
    has_temperature: bool = True
    has_logprobs: bool = True
    has_echo: bool = True
    """Whether completions repeat the prompt with its log-probabilities; llama.cpp takes a grammar instead."""

    def adapted(self, complaint: Complaint) -> Shape | None:
        """The shape without the parameter that is complained of, or None when it is about something else.

        Every adaptation takes something away, so that adapting ends.
        """
        if is_about_length(complaint):
            return None  # it may well name max_tokens, but a new name would not make the prompt shorter
        text = f"{complaint.message} {complaint.code}".lower()
        if not any(word in text for word in _UNKNOWN):
            return None
        return self._without(complaint.param.lower()) or self._without(text)

    def _without(self, named: str) -> Shape | None:
        if self.limit_name == "max_tokens" and "max_tokens" in named:
            return replace(self, limit_name="max_completion_tokens")
        if self.has_schema and any(name in named for name in _SCHEMA_NAMES):
            return replace(self, has_schema=False)
        if self.has_temperature and "temperature" in named:
            return replace(self, has_temperature=False)
        if self.has_logprobs and "logprobs" in named:
            return replace(self, has_logprobs=False)
        if self.has_echo and "echo" in named:
            return replace(self, has_echo=False)
        return None


FULL = Shape()
"""What an endpoint is taken to know until it says otherwise."""

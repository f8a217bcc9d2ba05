"""Where a model's reasoning ends and its answer begins: `<think>`, `[THINK]`, the channels of Harmony.

Linear in the length of the text, whatever it holds; of a text beyond `BOUND` only operations that run at the
speed of memory touch all of it.
"""

from __future__ import annotations

import re

BOUND = 250_000
"""Characters of a text that are looked at one by one: more than a judge is shown by default."""

# A quoted tag (`<think>` in backticks) is talk about reasoning, not reasoning.
_UNQUOTED = "(?<![`'\"])"
OPEN = (
    rf"{_UNQUOTED}(?:<(?:seed:)?think(?:ing)?>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary(?! to=functions))[^<>]{0,99}"
    r"<\|message\|>)"
)
"""A pattern for what opens reasoning, in the formats that models are known to use."""
CLOSE = (
    rf"{_UNQUOTED}(?:</(?:seed:)?think(?:ing)?>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>"
    r"|<\|channel\|>(?:final|commentary to=functions)[^<>]{0,99}(?:<\|constrain\|>[^<>]{0,99})?<\|message\|>)"
)
"""A pattern for what ends it."""
_CLOSERS = (
    *("</think>", "</thinking>", "</seed:think>", "[/THINK]", "◁/think▷", "<|END_THINKING|>"),
    "<|channel|>final<|message|>",
)
_CLOSED = re.compile(rf"{OPEN}.*?{CLOSE}", re.DOTALL)
_UP_TO_THE_LAST_CLOSE = re.compile(rf".*{CLOSE}", re.DOTALL)  # for match(), which tries one start only
_UNCLOSED = re.compile(rf"\s*+{OPEN}")


def without_reasoning(response: str) -> str:
    """The response as its reader gets it: without what stands between `<think>` and `</think>`.

    The tags may also be `<thinking>`, `[THINK]` or Harmony's channels, among others. Without an opening tag
    (chat templates often write it into the prompt) everything before `</think>` is reasoning. A response that
    opens with reasoning and never ends it has no answer; a tag that is opened behind an answer and never
    closed hides nothing.
    """
    if not ("think" in response or "THINK" in response or "<|channel|>" in response):
        return response
    is_long = len(response) > BOUND
    visible = response[_end_of_last_close(response) :] if is_long else _without_closed(response)
    if _UNCLOSED.match(visible):
        return ""
    return response if len(visible) == len(response) else visible.strip()


def _without_closed(response: str) -> str:
    """The text without closed blocks. Up to the last closing tag each opening one finds its end: linear."""
    found = _UP_TO_THE_LAST_CLOSE.match(response)
    if found is None:
        return response
    before = _CLOSED.sub("", found[0])
    unopened = _UP_TO_THE_LAST_CLOSE.match(before)
    return before[unopened.end() if unopened else 0 :] + response[found.end() :]


def _end_of_last_close(response: str) -> int:
    """Where the last closing tag ends that is not quoted; 0 where none of the last few is."""
    end = len(response)
    for _ in range(8):
        place, tag = max((response.rfind(tag, 0, end), tag) for tag in _CLOSERS)
        if place < 0:
            break
        if not response.endswith(("`", "'", '"'), 0, place):
            return place + len(tag)
        end = place
    return 0

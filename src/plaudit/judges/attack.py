"""Signs that a response was written to reach past the judge, rather than to answer the task.

None of them is a proof by itself: a tokenizer leaves `</s>` behind, a web page its soft hyphens. Hence the
thresholds, and hence only judges that are told to (`on_attack="flag"`) act on them. The fence holds anyway.
"""

from __future__ import annotations

import re

from plaudit.judges.clean import certain_tokens, clean
from plaudit.reasoning import BOUND

MAX_TOKENS = 3
"""Chat-template tokens that an honest text may contain: an end of text, a pair of `<think>` tags."""
MAX_INVISIBLE = 8
"""Invisible characters that any text may contain; a long one, one in a hundred."""
_FENCE = re.compile(r"</?(?:task|reference|response|first|second|turn|cut)-[A-Z]{12}\b")


def signs_of_attack(text: str) -> str:
    """What gives the attack away, in words; empty where nothing does."""
    if len(text) > BOUND:  # head and tail, as a judge is shown a long text
        text = text[: BOUND // 2] + text[-BOUND // 2 :]
    if found := _FENCE.search(text):
        return f"the response imitates a tag of the fence, {found[0]!r}"
    cleaned = clean(text)
    tokens = certain_tokens(text) if cleaned.tokens > MAX_TOKENS else 0
    if tokens > MAX_TOKENS:
        return f"the response holds {tokens:,} chat-template tokens"
    if cleaned.invisible > max(MAX_INVISIBLE, len(text) // 100):
        return f"the response holds {cleaned.invisible:,} invisible characters"
    return ""

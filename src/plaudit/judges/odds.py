"""How probable each answer was: the log-probabilities of a reply's first word.

A judge that may only say one word says more than that word: the alternatives tell how sure it was. Needs an
endpoint that returns `top_logprobs` (OpenAI, vLLM, SGLang, llama.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from plaudit.errors import UnreadableVerdict
from plaudit.judges.parse import check_declined
from plaudit.types import Reply, TokenChoice

VERSION = 1
"""Raise it whenever some reply is read differently than before."""
TOP_LOGPROBS = 20
MAX_TOKENS = 4
"""Room for a line break or a quotation mark before the word."""
AROUND_A_WORD = " \t\r\n\"'`*_.,:;!()[]▁Ġ"
"""Tokens come as `Yes`, ` yes`, `▁Yes`, `"yes`, `**Yes`: all of them say yes."""


def odds(reply: Reply, answers: Sequence[str], *, min_mass: float) -> tuple[list[float], float]:
    """The share of each answer among them, and how probable they were together.

    Answers are single words in lower case. Raises UnreadableVerdict where they have less than `min_mass`
    together: the judge was then about to say something else.
    """
    check_declined(reply)
    masses = _masses(first_word(reply), answers)
    mass = math.fsum(masses)
    if not mass >= min_mass or mass == 0.0:
        named = " and ".join(answers) if len(answers) == 2 else f"{answers[0]} to {answers[-1]}"
        raise UnreadableVerdict(
            f"{named} together have probability {mass:.2f}, less than min_mass={min_mass:g}"
        )
    return [part / mass for part in masses], mass


def first_word(reply: Reply) -> TokenChoice:
    """The first token that is more than white space and punctuation."""
    if not reply.tokens:
        raise UnreadableVerdict(
            "the reply has no log-probabilities; use an endpoint that returns top_logprobs, or another judge"
        )
    for choice in reply.tokens:
        if choice.token.strip(AROUND_A_WORD):
            return choice
    raise UnreadableVerdict("the reply has no word in it")


def _masses(choice: TokenChoice, answers: Sequence[str]) -> list[float]:
    masses = dict.fromkeys(answers, 0.0)
    for token, logprob in choice.top:
        word = token.strip(AROUND_A_WORD).lower()
        if word not in masses:
            continue
        if not logprob < 0.01:  # NaN too; some servers round a sure thing to a little above zero
            raise UnreadableVerdict(f"{logprob} is not the logarithm of a probability")
        masses[word] += math.exp(logprob)
    return list(masses.values())

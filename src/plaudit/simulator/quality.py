"""How good a response is, by rules that a simulated judge can follow.

Enough for a right answer to get more than a wrong one when things are tried out; no judge to rely on. Length,
form and wording make no difference.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator

BLOCK = re.compile(r"^<([a-z]+(?:-[A-Z]+)?)-([A-Z]{12})[^>\n]*>\n(.*?)\n</\1-\2>$", re.MULTILINE | re.DOTALL)
"""How plaudit's judges show what is judged: a label, a code, the content."""
WORD = re.compile(r"\d[\d,]*(?:\.\d+)?|[^\W\d_]+")
FILLERS = frozenset(
    re.findall(r"\w+", "a an and are as at be by for from in is it of on or that the to was with")
)
"""Words of a reference that say nothing by themselves."""
NUMBERS = {
    name: str(number)
    for number, name in enumerate(
        re.findall(r"\w+", "zero one two three four five six seven eight nine ten eleven twelve")
    )
}
NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
SUM = re.compile(rf"{NUMBER}\s*(\+|-|\*|×|x|/|÷|plus|minus|times|divided by)\s*{NUMBER}", re.IGNORECASE)
OPERATORS = {
    **dict.fromkeys(("+", "plus"), operator.add),
    **dict.fromkeys(("-", "minus"), operator.sub),
    **dict.fromkeys(("*", "×", "x", "times"), operator.mul),
    **dict.fromkeys(("/", "÷", "divided by"), operator.truediv),
}
NO_ANSWER = re.compile(
    r"\b(i (do not|don't) know|i('m| am) not sure|i (can't|cannot) (say|help|answer|tell)|no idea)\b",
    re.IGNORECASE,
)
WORST, BEST = 0.1, 0.95


def blocks_in(texts: tuple[str, ...]) -> dict[str, str]:
    """What a judge is shown, by label: `task`, `reference`, `response`; `response-ID`; `first`, `second`."""
    return {found[1]: found[3] for found in BLOCK.finditer(texts[-1])} if texts else {}


def quality(task: str, response: str, reference: str = "") -> float | None:
    """Between 0 and 1; None where these rules can say nothing.

    A response that says nothing, does not know, or repeats the task is bad. Where there is a reference, or
    the task is a single sum, it is as good as the part of the right answer's words that it contains.
    """
    if not response.strip():
        return 0.0
    if NO_ANSWER.search(response.replace("’", "'")) or response.strip() == task.strip():
        return WORST
    expected = set(_words(reference)) - FILLERS or set(_words(reference)) or set(_words(_result(task)))
    if not expected:
        return None
    found = expected & set(_words(response))
    return WORST + (BEST - WORST) * len(found) / len(expected)


def _words(text: str) -> Iterator[str]:
    words = (word.lower().replace(",", "") for word in WORD.findall(text))
    return (NUMBERS.get(word, word) for word in words)


def _result(task: str) -> str:
    """The result of the sum that a task asks for; empty where it has none, or several."""
    sums = SUM.findall(task)
    if len(sums) != 1:
        return ""
    left, sign, right = sums[0]
    try:
        result = OPERATORS[sign.lower()](*(float(number.replace(",", "")) for number in (left, right)))
    except (ZeroDivisionError, OverflowError):
        return ""
    return f"{result:.12g}".lstrip("-")

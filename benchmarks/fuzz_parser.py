"""Judge replies by the ten thousand, honest, tampered with and random, through the parser.

    python benchmarks/fuzz_parser.py [--replies 10000] [--seed 0]

Every honest verdict must be read as it is; nothing may be read from a reply that was tampered with, or from
prose; no score may be off the scale; no error but UnreadableVerdict and Declined may come out. Then the
slowest replies anybody could think of must take under 50 ms: a megabyte each, and cut to the length up to
which a reply is searched at all, beyond which it is no verdict. Exit status 2 where anything is
misread, 1 where only the time is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable

import table

from plaudit.errors import Declined, UnreadableVerdict
from plaudit.judges import Rubric
from plaudit.judges.reply_text import MAX_REPLY
from plaudit.types import Reply, Sample

LOW, HIGH = 0, 10
RUBRIC = Rubric("Is it correct?", scale=(LOW, HIGH))
SAMPLE = Sample("What is the capital of France?", "Paris is the capital of France. It lies on the Seine.")
MEGABYTE = 1_000_000
GOAL_S = 0.050

WORDS = (
    "the",
    "answer",
    "is",
    "right",
    "score",
    "7",
    "10/10",
    "{x}",
    "\\frac{1}{2}",
    '"so"',
    "é",
    "😀",
    "\n",
)
PROSE = (
    "Here is my verdict:",
    "Step 1: fine. Step 2: wrong.",
    "I weighed it against the rubric: 8 out of 10, perhaps.",
    "The response claims a score of 9.",
    'It returns {"a": 1}, as asked.',
)
INTRODUCTIONS = (
    "",
    "Here is my evaluation:\n\n",
    "The response is correct but adds a fact nobody asked for.\n\n",
    "1. Correct.\n2. Wordy.\n\n",
    '<think>Maybe 3? {"score": 3}</think>\n\n',
    "## Assessment\n\nThe capital is right.\n\n## Verdict\n\n",
    "First, the capital: right. Second, brevity: not quite.\n\n",
    "Based on the rubric, my verdict is:\n\n",
    "**Analysis:** The capital is correct.\n\n",
    "I would score this response as follows:\n",
)
OTHERS_WORDS = (
    "The response claims:\n\n",
    "For example:\n",
    "If it were shorter, I would give:\n",
    "The student wrote the following:\n",
    "My first impression was\n",
)
REMARKS = (
    "",
    "\n\nThe response is clear.",
    "\n\nThe capital is right, but the second sentence is superfluous.",
    "\n\nLet me know if you need more detail!",
    "\n\nExplanation: the Seine was not asked for.",
    "\n\n**Strengths:**\n- correct\n\n**Weaknesses:**\n- wordy",
    "<|im_end|>",
    "\n\n---\n\nWhile the capital is correct, the rest is unnecessary.",
)
RETRACTIONS = (
    "\n\nSorry, I graded the wrong response.",
    "\n\nHowever, I have to withdraw this.",
    "\n\nThat was the example; my verdict follows.",
    "\n\nDisregard.",
    "\n\nHmm, no.",
)
NOISE = (
    *('{"', '"', "{", "}", "[", "]", ":", ",", "\\", "\\u0073", '"score"', '"reason"', "score", "7", "NaN"),
    *(
        "Infinity",
        "-",
        "1e999",
        "true",
        "null",
        "```",
        "```json",
        "\n",
        " ",
        "<think>",
        "</think>",
        "é",
        "\ud800",
    ),
    *('{"score": 7}', '{"reason": "a", "score": 3}', "'", "\x00", "Score: 4", "I cannot help."),
)


def verdict(score: object, reason: str = "Fair.") -> str:
    return json.dumps({"reason": reason, "score": score})


def words(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randrange(12)))


def in_some_form(score: int, chance: random.Random) -> str:
    """A verdict in one of the forms in which models write it."""
    own = verdict(score, "Right, but wordy.")
    forms = (
        own,
        f"```json\n{own}\n```",
        f"`{own}`",
        f'{{"verdict": {own}}}',
        f"[{own}]",
        f"{{'reason': 'Right, but wordy.', 'score': {score}}}",
        f'{{"reason": "Uses \\frac{{1}}{{2}} and \\alpha.", "score": "{score}/10"}}',
        f'{{"reason": "Says "Seine" twice.", "score": {score}}}',
        f'<tool_call>\n{{"name": "v", "arguments": {own}}}\n</tool_call>',
        f"<verdict><reason>Right.</reason><score>{score}</score></verdict>",
        f"**Final score:** {score}/10",
        f"### Score\n{score}/10",
        f"Rating: [[{score}]]",
        f"评分：{score}/10",
    )
    return chance.choice(forms)


def composed(chance: random.Random, *, is_honest: bool) -> tuple[str, int]:
    """A verdict with ordinary words around it; one that is not honest is another's, or taken back."""
    score = chance.randint(LOW, HIGH)
    before, after = chance.choice(INTRODUCTIONS), chance.choice(REMARKS)
    if not is_honest:
        before, after = chance.choice(
            [
                (chance.choice(OTHERS_WORDS), ""),
                (before, chance.choice(RETRACTIONS)),
                (before, "\n\nScore: 11"),
            ]
        )
    return before + in_some_form(score, chance) + after, score


def honest(chance: random.Random) -> tuple[str, int]:
    """A reply with one verdict, and the score in it."""
    if chance.random() < 0.5:
        return composed(chance, is_honest=True)
    score = chance.randint(LOW, HIGH)
    own = verdict(score, words(chance))
    shapes = (
        own,
        f"```json\n{own}\n```",
        f"{chance.choice(PROSE[:2])}\n{own}",
        f"<think>Perhaps {verdict(chance.randint(LOW, HIGH))}?</think>\n{own}",
        f"{own}\n\nFinal:\n{own}",
        f"[{own}]",
        verdict(str(score), "Fair."),
        f'{{"verdict": {own}}}',
        f"{{'reason': 'a', 'score': {score},}}",
        f"Score: {score}",
        f"It is right, but wordy.\n\n**Score: {score}/10**",
    )
    return chance.choice(shapes), score


def tampered(chance: random.Random) -> str:
    """A reply in which somebody else's number stands too, or whose verdict is damaged."""
    if chance.random() < 0.5:
        return composed(chance, is_honest=False)[0]
    score, other = chance.sample(range(LOW, HIGH + 1), 2)
    own, fake = verdict(score, words(chance)), verdict(other, words(chance))
    bad = chance.choice(
        ["high", "7/100", True, None, 11, -1, 6.5, [7, 8], {"value": 7, "style": 8}, 10**30, float("nan")]
    )
    shapes = (
        f"{fake}\n{own}",
        f"The response says ```json\n{fake}\n``` but\n{own}",
        f'{{"example": {own}}}',
        f"[{own}, {fake}]",
        f'{{"reason": "a", "score": {score}, "score": {other}}}',
        f'{{"reason": "a", "score": {score}, "sc\\u006fre": {other}}}',
        f"**Final score:** {other}\n{own}",
        f'{own} {{"score": {other}',
        f"<think>{own}",
        f"{{'reason': 'a', 'score': {score}, 'score': {other}}}",
        f"Score: {score}\nScore: {other}",
        f"Score: {score} out of 100",
        verdict(bad),
        own[: chance.randrange(len(own))],
    )
    return chance.choice(shapes)


def prose(chance: random.Random) -> str:
    """A score in words and numbers, and no object."""
    score = chance.randint(LOW, HIGH)
    ends = (
        f"A fair score: {score}",
        f"{score}",
        f"{score} for style",
        f"I may give it a {score}.",
        f"{score}-10",
    )
    return " ".join(chance.choices(PROSE, k=chance.randrange(4))) + "\n" + chance.choice(ends)


def noise(chance: random.Random) -> str:
    """Pieces of verdicts in any order, or any characters at all."""
    if chance.random() < 0.5:
        return "".join(chance.choices(NOISE, k=chance.randrange(30)))
    return "".join(chr(chance.randrange(0x11000)) for _ in range(chance.randrange(80)))


GIANTS = {
    "open braces": "{" * MEGABYTE,
    "open objects": '{"' * (MEGABYTE // 2),
    "nested objects": '{"a":' * (MEGABYTE // 5),
    "nested lists": "[" * MEGABYTE,
    "backslashes": '{"reason": "' + "\\" * MEGABYTE,
    "quotes": '{"score": 7' + '"' * MEGABYTE,
    "spaces": '{"score":' + " " * MEGABYTE + "7}",
    "digits": '{"score": ' + "9" * MEGABYTE + "}",
    "one long reason": verdict(7, "word " * (MEGABYTE // 5)),
    "a hundred thousand verdicts": '{"score": 7}\n' * (MEGABYTE // 13),
    "two verdicts, by turns": '{"score": 7}{"score": 8}' * (MEGABYTE // 24),
    "score lines": "Score: 7\n" * (MEGABYTE // 9),
    "reasoning that never ends": "<think>" + "hm " * (MEGABYTE // 3),
    "reasoning, then a verdict": "<think>" + '{"score": 1} ' * (MEGABYTE // 13) + "</think>" + verdict(7),
    "reasoning tags": "<think></think>" * (MEGABYTE // 15),
    "code fences": "```json\n" * (MEGABYTE // 8),
    "refusals": "I cannot help. " * (MEGABYTE // 15),
    "broken objects": "{a: b, " * (MEGABYTE // 7),
    "full stops": "。" * MEGABYTE,
    "scores alone": "7/10\n" * (MEGABYTE // 5),
    "rows of a table": "| a | 7 |\n" * (MEGABYTE // 10),
}


def read(text: str) -> float | str:
    """The score, or the name of the way in which the parser declined."""
    try:
        found = RUBRIC.parse(Reply(text), SAMPLE).score
    except (UnreadableVerdict, Declined) as declined:
        return "declined" if isinstance(declined, Declined) else "unreadable"
    return "no score" if found is None else found


def holds(score: float, text: str) -> bool:
    """Whether some object that starts anywhere in the text, or some line, has this score."""
    if re.search(rf"score[\"']?\s*:\s*[\"']?{score:g}(?!\d)", text, re.IGNORECASE):
        return True
    decoder = json.JSONDecoder(strict=False)
    for start, character in enumerate(text):
        if character == "{":
            try:
                value, _ = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            if value.get("score") == score:
                return True
    return False


def fuzz(replies: int, seed: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """What became of each kind of reply, and every broken promise."""
    chance = random.Random(seed)
    makers: dict[str, Callable[[random.Random], str]] = {"tampered": tampered, "prose": prose, "noise": noise}
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("honest", *makers)}
    broken: list[str] = []
    for number in range(replies):
        kind = tuple(counts)[number % len(counts)]
        expected: int | None = None
        if kind == "honest":
            text, expected = honest(chance)
        else:
            text = makers[kind](chance)
        try:
            got = read(text)
        except Exception as error:  # noqa: BLE001 - this is what the benchmark looks for
            counts[kind]["crashed"] += 1
            broken.append(f"{kind}: {type(error).__name__} on {text[:80]!r}")
            continue
        counts[kind]["read" if isinstance(got, float) else got] += 1
        if kind == "honest":
            is_kept = got == expected
        elif kind == "noise":
            is_kept = not isinstance(got, float) or (LOW <= got <= HIGH and holds(got, text))
        else:
            is_kept = not isinstance(got, float)
        if not is_kept:
            broken.append(f"{kind}: {got} from {text[:80]!r}")
    return counts, broken


def seconds(text: str) -> float:
    """CPU seconds that reading takes: the median of five."""
    taken = []
    for _ in range(5):
        started = time.process_time()
        read(text)
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--replies", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    counts, broken = fuzz(given.replies, given.seed)
    columns = ("read", "unreadable", "declined", "crashed")
    rows = [
        (kind, str(count.total()), *(str(count[column]) for column in columns))
        for kind, count in counts.items()
    ]
    table.show(f"{given.replies:,} replies, seed {given.seed}", ("kind", "replies", *columns), rows)
    times = {name: (seconds(text), seconds(text[:MAX_REPLY])) for name, text in GIANTS.items()}
    table.show(
        "Adversarial replies, median of five",
        ("reply", "1 MB, ms", f"cut to {MAX_REPLY:,}, ms", "1 MB became"),
        [
            (name, f"{1000 * whole:.1f}", f"{1000 * cut:.1f}", str(read(GIANTS[name])))
            for name, (whole, cut) in times.items()
        ],
    )
    slow = [f"{name} took {1000 * max(took):.0f} ms" for name, took in times.items() if max(took) > GOAL_S]
    for line in (*broken[:20], *slow):
        print(f"BROKEN  {line}", file=sys.stderr)
    slowest, slowest_cut = (1000 * max(took[column] for took in times.values()) for column in (0, 1))
    print(
        f"broken promises: {len(broken)}; slowest megabyte {slowest:.1f} ms, slowest cut {slowest_cut:.1f} ms"
    )
    return 2 if broken else 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

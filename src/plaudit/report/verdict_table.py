"""Verdicts as a table: a data frame for pandas, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from plaudit.errors import ConfigError
from plaudit.install_command import install_command
from plaudit.policy.fingerprint import sample_id
from plaudit.types import Cause, Sample, Verdict

if TYPE_CHECKING:
    import pandas

SHOWN = 20
CHARS = 120
LEFT = 'style="text-align:left"'
"""Notebooks align the cells of tables to the right, which suits numbers only."""


PLAIN = "tex2jax_ignore mathjax_ignore"
"""Notebooks set what stands between two dollar signs as a formula, but not in what has these classes."""


def verdicts_to_pandas(
    verdicts: Sequence[Verdict], samples: Sequence[Sample] | None = None
) -> pandas.DataFrame:
    """Verdicts as a data frame, a row each.

    Args:
        verdicts: What `Engine.score` or `Pending.result` gave.
        samples: What they are about, in the same order: their texts and groups become columns too.

    Returns:
        Columns score, status, cause, reason, error, model, source, attempts, latency_s, prompt_tokens,
        completion_tokens, cost, and `part.NAME` for each part; before them prompt, response, reference,
        group and `record` (how a journal names the sample) where samples are given.

    Raises:
        ConfigError: pandas is not installed, or there are more samples than verdicts, or fewer.
    """
    try:
        import pandas
    except ImportError:
        raise ConfigError(f"a DataFrame needs pandas; run: {install_command('pandas')}") from None
    if not verdicts and not samples:  # a run of nothing has the columns of one of something
        nothing = [Sample("", "")] if samples is not None else None
        return pandas.DataFrame(rows([Verdict.failed(Cause.CODE, "")], nothing)).iloc[:0]
    return pandas.DataFrame(rows(verdicts, samples))


def rows(verdicts: Sequence[Verdict], samples: Sequence[Sample] | None = None) -> list[dict[str, Any]]:
    """The same as plain data. Raises ConfigError where the two do not fit together."""
    if samples is not None and len(samples) != len(verdicts):
        raise ConfigError(f"there are {len(verdicts)} verdicts and {len(samples)} samples; give one for each")
    found = []
    for number, verdict in enumerate(verdicts):
        row: dict[str, Any] = {}
        if samples is not None:
            sample = samples[number]
            row = {
                "prompt": sample.prompt,
                "response": sample.text,
                "reference": sample.reference,
                "group": sample.group,
                "record": sample_id(sample),
            }
        row |= {
            "score": verdict.score,
            "status": verdict.status.value,
            "cause": verdict.cause.value if verdict.cause else None,
            "reason": verdict.reason,
            "error": verdict.error,
            "model": verdict.model,
            "source": verdict.source.value,
            "attempts": verdict.attempts,
            "latency_s": verdict.latency_s,
            "prompt_tokens": verdict.usage.prompt_tokens,
            "completion_tokens": verdict.usage.completion_tokens,
            "cost": verdict.usage.cost,
        }
        row |= {f"part.{name}": value for name, value in verdict.parts.items()}
        found.append(row)
    return found


class VerdictList(list[Verdict]):
    """A list that shows itself as a table in a notebook, and so do its slices."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> VerdictList: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Verdict | VerdictList:
        found = super().__getitem__(index)
        return VerdictList(found) if isinstance(found, list) else found

    def _repr_html_(self) -> str:
        scored = [verdict.score for verdict in self if verdict.score is not None]
        mean = f", mean score {sum(scored) / len(scored):.3g}" if scored else ""
        return f"<p>{len(self):,} verdicts, {len(scored):,} with a score{mean}</p>{verdicts_html(self)}"


def verdicts_html(verdicts: Sequence[Verdict | None]) -> str:
    """The first verdicts as a table for a notebook; None is one that has not come yet."""
    body = "".join(_row(number, verdict) for number, verdict in enumerate(verdicts[:SHOWN]))
    more = len(verdicts) - SHOWN
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    head = f"<tr><th></th><th>score</th><th {LEFT}>status</th><th {LEFT}>reason</th></tr>"
    return f'<table class="{PLAIN}"><thead>{head}</thead><tbody>{body}</tbody></table>{rest}'


def _row(number: int, verdict: Verdict | None) -> str:
    score, status, said = "", "waiting", ""
    if verdict is not None:
        score = "" if verdict.score is None else f"{verdict.score:g}"
        status = verdict.status.value
        said = escape((verdict.reason or verdict.error or "")[:CHARS])
    return f"<tr><td>{number}</td><td>{score}</td><td {LEFT}>{status}</td><td {LEFT}>{said}</td></tr>"

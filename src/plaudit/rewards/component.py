"""One part of a reward: where its value comes from, and what is done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from plaudit.errors import ConfigError
from plaudit.rewards.base import Source
from plaudit.rewards.grouping import check_finite

Use = Literal["add", "penalise", "screen", "observe"]


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a reward: where its value comes from, and what is done with it."""

    name: str
    source: str | Source | None = None
    """A Source, or the name of a list of verdicts; None: the list of the component's own name."""
    weight: float = 1.0
    use: Use = "add"
    """add: weight x value is added. penalise: it is subtracted (a monitor's verdict). screen: a row whose
    value reaches the threshold is left out. observe: a metric only; its failures harm nobody."""
    threshold: float = 0.5
    """For use="screen"."""
    floor: float | None = None
    """The lowest value there is; what a failure that the response brought about is worth under
    on_content_failure="floor"."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError(
                "names no component; it becomes part of a metric's name", setting="name", value=self.name
            )
        for name in ("weight", "threshold"):
            check_finite(f"{name} of {self.name!r}", getattr(self, name))
        if self.floor is not None:
            check_finite(f"floor of {self.name!r}", self.floor)
        if self.use not in get_args(Use):
            raise ConfigError(
                f"of {self.name!r} is unknown; use {', '.join(get_args(Use))}", setting="use", value=self.use
            )
        if isinstance(self.source, type) or not (
            self.source is None or isinstance(self.source, str) or hasattr(self.source, "values")
        ):
            raise ConfigError(
                f"source of {self.name!r} is {self.source!r}; give a Source like RuleReward(fn), "
                "or the name of a list of verdicts"
            )

    @property
    def column(self) -> str | None:
        """The list of verdicts that it reads, if it reads one."""
        return self.source if isinstance(self.source, str) else self.name if self.source is None else None

    @property
    def sign(self) -> float:
        return {"add": self.weight, "penalise": -self.weight}.get(self.use, 0.0)

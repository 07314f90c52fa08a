"""What comes out: a certificate, and what is certified of the improvement over the logging policy.

Both can only be made by `manyarms.certificates.certify` and its `improvement`, which see to it that parameters were fixed
beforehand or are paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path

from manyarms._base.tables import Shown, Table
from manyarms.errors import InvalidInput

TOKEN = object()
"""What `certify` and `improvement` pass to the constructor of a certificate: nothing else does."""


def _require_token(token: object, what: str, maker: str) -> None:
    if token is not TOKEN:
        raise InvalidInput(what, "one constructed directly", f"one returned by manyarms.certificates.{maker}")


@dataclass(frozen=True, repr=False)
class Ends(Shown):
    """What one bound says, in the units of the rewards; it holds together with all others of its certificate."""

    family: str
    label: str
    """The bound with the parameters that gave the lower end."""

    value: float
    lower: float
    upper: float
    terms: Mapping[str, float]
    upper_terms: Mapping[str, float]
    settings: Mapping[str, float]


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """The policy's value lies between `lower` and `upper` with probability at least 1 - delta over logs like this one.

    value: the estimate that the best lower bound starts from. terms: what is taken off it, by name. candidates: all bounds that
    were declared, which hold together. notes: on what all this rests.
    """

    lower: float
    upper: float
    value: float
    terms: Mapping[str, float]
    bound: str
    delta: float
    grid: Mapping[str, tuple[float, ...]]
    kl: float
    rows: int
    actions: int
    logged: float
    """The mean reward of the log."""

    largest_reward: float
    two_sided: bool
    learned: bool
    """Whether the policy may have been learned from these rows (PAC-Bayes), or was fixed beforehand."""

    candidates: tuple[Ends, ...]
    notes: tuple[str, ...]
    unit: str = "row"
    """What the value is per, and what `rows` counts: a row, or a group of rows (`manyarms.certificates.groups`)."""

    per_row: tuple[float, float] | None = None
    """Where rows come in groups: ends for the value per row, a statement of its own at the same delta."""

    token: InitVar[object] = field(default=None, kw_only=True)

    def __post_init__(self, token: object) -> None:
        _require_token(token, "certificate", "certify")

    @property
    def vacuous_below(self) -> bool:
        """Whether the lower end says no more than that rewards are at least 0."""
        return not self.lower > 0

    @property
    def vacuous_above(self) -> bool:
        """Whether the upper end says no more than that rewards are at most the largest."""
        return not self.upper < self.largest_reward

    @property
    def vacuous(self) -> bool:
        """Whether an end that was asked for says nothing."""
        return self.vacuous_below or (self.two_sided and self.vacuous_above)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def report(self, path: str | Path, improvement: Improvement | None = None) -> Path:
        """Write an HTML page; its path."""
        from manyarms.certificates.page import write

        return write(self, improvement, Path(path))

    def _table(self) -> Table:
        from manyarms.certificates.text import as_table

        return as_table(self)

    def _line(self) -> str:
        from manyarms.certificates.text import claim

        return claim(self)


@dataclass(frozen=True, repr=False)
class Improvement(Shown):
    """The policy's value exceeds the logging policy's by at least `lower`, with probability at least 1 - delta."""

    lower: float
    estimate: float
    logged: float
    delta: float
    smoothing: float
    rows: int
    rows_needed: int | None
    """How many rows with the same averages would certify any improvement at all; None where no number would."""

    notes: tuple[str, ...]
    unit: str = "row"
    token: InitVar[object] = field(default=None, kw_only=True)

    def __post_init__(self, token: object) -> None:
        _require_token(token, "improvement", "improvement")

    @property
    def certified(self) -> bool:
        """Whether the policy is shown to be better."""
        return self.lower > 0

    def _table(self) -> Table:
        from manyarms.certificates.text import improvement_table

        return improvement_table(self)


__all__ = ["TOKEN", "Certificate", "Ends", "Improvement"]

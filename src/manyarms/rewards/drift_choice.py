"""Which half-life predicts a log best: what `choose_drift` finds, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manyarms._base.files import write_text_atomically
from manyarms._base.html import require_page
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import Array
from manyarms.beliefs import Likelihood
from manyarms.beliefs.drift import Drift
from manyarms.priors import ParameterPrior

ENOUGH = 2.0  # standard errors from the best, within which a half-life is plausible
UNITS = (("days", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def length_text(half_life: float, clock: str) -> str:
    """A half-life for a reader: 3,000 rounds, 2.5 days."""
    if math.isinf(half_life):
        return "no drift"
    if clock == "rounds":
        return f"{_digits(half_life)} rounds"
    name, size = next((unit for unit in UNITS if half_life >= 2 * unit[1]), UNITS[-1])
    return f"{_digits(half_life / size)} {name}"


def _digits(value: float) -> str:
    """Three digits that count."""
    value = float(f"{value:.3g}")
    return f"{value:,.0f}" if 1e3 <= value < 1e9 else f"{value:.3g}"


SMALLEST = 1e-6  # difference a row that is told apart from none


def _with_error(value: float, error: float) -> str:
    """A number and its standard error, with two digits of the error: 0.0214 ± 0.0021."""
    if max(abs(value), error) < SMALLEST:
        return f"less than {SMALLEST:f}"
    if not 0 < error < 1e6:
        return f"{number(value)} ± {number(error)}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{places}f} ± {error:,.{places}f}"


@dataclass(frozen=True, eq=False, repr=False)
class DriftChoice(Shown):
    """How well a log is predicted by half-lives, shortest first; the last one is infinite: no drift.

    log_likelihoods: the mean over rows of log p(reward | rows before), without what depends on the reward alone where rewards
    are not linear. differences: to the best, 0 or below. standard_errors: of the differences, paired row by row, from sums over
    blocks of consecutive rows, since rows near each other in time are predicted well or badly together. prior, likelihood: what
    all half-lives had in common, as given or fitted.
    """

    half_lives: tuple[float, ...]
    log_likelihoods: Array
    differences: Array
    standard_errors: Array
    rows: int
    clock: str
    ordered: bool  # by timestamps
    prior: ParameterPrior
    likelihood: Likelihood

    @classmethod
    def of_sums(
        cls,
        half_lives: Sequence[float],
        sums: Array,
        counts: Array,
        *,
        clock: str,
        ordered: bool,
        prior: ParameterPrior,
        likelihood: Likelihood,
    ) -> DriftChoice:
        """From log densities summed over blocks: sums (half-lives, blocks), and how many rows each block has."""
        rows, blocks = int(counts.sum()), len(counts)
        means = sums.sum(axis=1) / rows
        gaps = sums - sums[int(np.argmax(means))]
        differences = gaps.sum(axis=1) / rows
        spread = gaps - differences[:, None] * counts  # what a block has more than its rows' share
        errors = np.sqrt((spread**2).sum(axis=1) * (blocks / max(1, blocks - 1))) / rows
        return cls(tuple(half_lives), means, differences, errors, rows, clock, ordered, prior, likelihood)

    @property
    def best(self) -> float | None:
        """The half-life that predicts best; None: no drift does."""
        found = self.half_lives[int(np.argmax(self.log_likelihoods))]
        return None if math.isinf(found) else found

    @property
    def drift(self) -> Drift | None:
        """The model with the best half-life, for `drift=` of an agent; None where no drift predicts as well, or nearly.

        Forgetting what still holds costs more than keeping what changes so slowly that a log of this length does not show it.
        """
        if self.best is None or math.inf in self.plausible:
            return None
        return Drift(half_life=self.best, clock=self.clock)

    @property
    def plausible(self) -> tuple[float, ...]:
        """The half-lives within two standard errors of the best, infinity among them where no drift is."""
        near = self.differences + ENOUGH * self.standard_errors >= 0
        return tuple(half_life for half_life, one in zip(self.half_lives, near.tolist(), strict=True) if one)

    @property
    def sentence(self) -> str:
        """What came out, in words."""
        finite, among = [one for one in self.plausible if math.isfinite(one)], math.inf in self.plausible
        worse = f"{self._gap(-1)} a row"
        if self.best is None:
            if finite:
                return f"no drift is seen; if there is any, its half-life is {self._text(finite[0])} or longer"
            nearest = int(np.argmax(self.differences[:-1]))
            near = self._text(self.half_lives[nearest])
            return f"no drift: the nearest half-life, {near}, predicts worse by {self._gap(nearest)} a row"
        if among:
            return (
                f"drift cannot be told from none: {self._text(self.best)} is the best half-life, but without drift the log is "
                f"predicted worse by {worse} only"
            )
        ends = "" if len(finite) == 1 else f" ({self._range(finite[0], finite[-1])})"
        return (
            f"rewards drift with a half-life of about {self._text(self.best)}{ends}; without drift the log is predicted worse by "
            f"{worse}"
        )

    @property
    def code(self) -> str:
        """The argument that makes an agent drift like this; none where nothing drifts."""
        return (
            "drift=None" if self.drift is None else f"drift=ma.Drift(half_life={self.best:.10g}, clock='{self.clock}')"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about it."""
        order = "of their timestamps" if self.ordered else "that they have in the log"
        told = [f"{counted(self.rows, 'row')} in the order {order}; plausible: within two standard errors of the best"]
        if self.best == self.half_lives[0] and len(self.half_lives) > 2:
            told.append("the shortest half-life is the best: try shorter ones")
        return tuple(told)

    def write_page(self, path: Path | str, name: str = "the log") -> None:
        """Write an HTML page with the answer, a picture and the table; name: of the log."""
        from manyarms.rewards.drift_page import page  # late: it stands on this module

        write_text_atomically(require_page("path", path), page(self, name))

    def _gap(self, place: int) -> str:
        return _with_error(-float(self.differences[place]), float(self.standard_errors[place]))

    def _range(self, low: float, high: float) -> str:
        ends = self._text(low), self._text(high)
        (first, unit), (_, other) = (end.split(" ") for end in ends)
        return f"{first if unit == other else ends[0]} to {ends[1]}"

    def _text(self, half_life: float) -> str:
        return length_text(half_life, self.clock)

    def _table(self) -> Table:
        chosen, likely = int(np.argmax(self.log_likelihoods)), set(self.plausible)
        rows = [
            (
                self._text(half_life),
                float(self.log_likelihoods[i]),
                float(self.differences[i]),
                float(self.standard_errors[i]),
                "<- best" if i == chosen else "plausible" if half_life in likely else "",
            )
            for i, half_life in enumerate(self.half_lives)
        ]
        columns = ("half-life", "log-likelihood a row", "difference to the best", "std. error", "")
        return Table(self.sentence, columns, rows, [*self.notes, *([] if self.drift is None else [self.code])])


__all__ = ["DriftChoice", "length_text"]

"""Does traffic reach the arms of an experiment in the shares that it should? An answer that may be looked at at any time.

Under the shares p the arms a_1, a_2, … are independent draws. For any other shares q the likelihood ratio ∏ q(a)/p(a) is a
martingale, and so is its mixture over a Dirichlet law with parameters c·p (Lindon and Malek, "Anytime-valid inference for
multinomial count data", 2022):

    E_t = ∫ ∏_i q_i^{n_i} dDir(q; c p) / ∏_i p_i^{n_i}  =  Γ(c)/Γ(c + t) ∏_i Γ(c p_i + n_i)/Γ(c p_i) p_i^{−n_i}

By Ville's inequality P(ever E_t ≥ 1/α) ≤ α, hence min over time of 1/E_t is a p-value at any time. Round by round,

    E_t = E_{t−1} · (c p_a + n_a)/((c + t − 1) p_a)           n_a: how often the arm came before
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Self

import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms._base.typing import Spec
from manyarms.errors import InvalidInput
from manyarms.sequential import inputs

MOST_ARMS = 100_000
LEAST_SHARE = 1e-12
MOST_SHOWN = 20  # arms, in print


class SampleRatio(Shown):
    """A test, valid at all times, of whether arms are drawn with known shares; `alarm` at level alpha, ever.

    shares: of the arms, by their numbers 0, 1, …; they sum to 1. concentration: c, how near to the shares the alternatives
    are; 100 looks for deviations of some per cent. Units must be counted once (a sticky unit's first round), or they are not
    independent.

    >>> ratio = SampleRatio([0.5, 0.5])
    >>> ratio.update([0, 0, 1, 0, 0, 0] * 50)
    >>> ratio.alarm, ratio.p_value < 0.001
    (74, True)
    """

    def __init__(self, shares: Sequence[float], alpha: float = 0.001, concentration: float = 100.0) -> None:
        found = inputs.some("shares", shares, LEAST_SHARE, 1.0, most_of_them=MOST_ARMS)
        if len(found) < 2 or abs(math.fsum(found) - 1) > 1e-9:
            raise InvalidInput("shares", f"{len(found)} with sum {math.fsum(found):g}", "two or more that sum to 1")
        self.shares = found
        self.alpha = inputs.level(alpha)
        self.concentration = validate.number("concentration", concentration, least=1e-3, most=1e9)
        self.counts = [0] * len(found)
        self.log_e = 0.0
        self.largest_log_e = 0.0
        self.alarm: int | None = None  # the round, from 1 on, in which alpha was reached

    @property
    def count(self) -> int:
        """Rounds so far."""
        return sum(self.counts)

    @property
    def p_value(self) -> float:
        """Valid at any time: at most u, ever, with probability at most u if the shares are right."""
        return math.exp(-self.largest_log_e)

    def update(self, arm: npt.ArrayLike) -> None:
        """The number of an arm, or several in order."""
        listed: npt.ArrayLike = [arm] if isinstance(arm, numbers.Integral) else arm
        arms = validate.action_ids("arm", listed, len(self.shares)).tolist()
        c, before, log_threshold = self.concentration, self.count, -math.log(self.alpha)
        for t, i in enumerate(arms, before):
            self.log_e += math.log((c * self.shares[i] + self.counts[i]) / ((c + t) * self.shares[i]))
            self.counts[i] += 1
            self.largest_log_e = max(self.largest_log_e, self.log_e)
            if self.alarm is None and self.log_e >= log_threshold:
                self.alarm = t + 1

    def spec(self) -> Spec:
        """The state as JSON holds it."""
        declared: Spec = {"shares": list(self.shares), "alpha": self.alpha, "concentration": self.concentration}
        evidence = {"log_e": self.log_e, "largest_log_e": self.largest_log_e}
        return {"kind": "sample_ratio", **declared, "counts": list(self.counts), **evidence, "alarm": self.alarm}

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        names = ("shares", "alpha", "concentration", "counts", "log_e", "largest_log_e", "alarm")
        *declared, counts, log_e, largest, alarm = inputs.saved(spec, "sample_ratio", *names)
        made = cls(*declared)
        if not isinstance(counts, list | tuple) or len(counts) != len(made.shares):
            raise InvalidInput("spec", validate.describe(counts), f"{len(made.shares)} counts")
        made.counts = [validate.count("spec", one, least=0) for one in counts]
        made.log_e = validate.number("spec", log_e)
        made.largest_log_e = validate.number("spec", largest, least=max(0.0, made.log_e))
        made.alarm = None if alarm is None else validate.count("spec", alarm, most=max(1, made.count))
        return made

    def __repr__(self) -> str:
        said = "no alarm" if self.alarm is None else f"alarm in round {self.alarm:,}"
        return f"SampleRatio: {self.count:,} rounds in {len(self.shares)} arms, p-value {self.p_value:.3g}, {said}"

    def _table(self) -> Table:
        said = "no alarm" if self.alarm is None else f"alarm in round {self.alarm:,}"
        title = f"sample ratio of {counted(self.count, 'round')}: {said}, p-value {self.p_value:.3g}"
        rows = [
            (arm, n, f"{n / max(1, self.count):.2%}", f"{share:.2%}")
            for arm, (n, share) in enumerate(zip(self.counts, self.shares, strict=True))
        ]
        notes = [f"the first {MOST_SHOWN} of {len(rows):,} arms"] if len(rows) > MOST_SHOWN else []
        return Table(title, ("arm", "rounds", "got", "should be"), rows[:MOST_SHOWN], notes)


__all__ = ["SampleRatio"]

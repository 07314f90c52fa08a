"""A correction of one's own: propensities clipped softly, pi / sqrt(pi0^2 + c^2).

What it promises is stated, and nothing else is relied on. It is then available as `ma.IPS(SoftClip(0.1))` wherever estimators
are taken, and by its name: "soft-clip:0.1".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from manyarms.errors import InvalidInput
from manyarms.weights import CORRECTIONS, Correction, Rule


@CORRECTIONS.register("soft-clip")
@dataclass(frozen=True)
class SoftClip(Correction):
    """pi / sqrt(pi0^2 + c^2), c >= 0; c = 0 is IPS."""

    c: float
    summary: ClassVar[str] = "inverse propensity scoring, propensities clipped softly at c"
    parameter: ClassVar[str | None] = "c"
    rule: ClassVar[Rule | None] = Rule("c = 1/sqrt(n)", lambda n: n**-0.5, lambda n: (1.0, n**-0.25, n**-0.5, n**-1.0))
    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.c >= 0:
            raise InvalidInput("c", self.c, "a number of at least 0")

    @property
    def is_none(self) -> bool:
        return self.c == 0

    def weight(self, pi, pi0, reward=None):
        return pi / (pi0**2 + self.c**2) ** 0.5

    def bound(self, pi0_min: float = 0.0) -> float | None:
        floor = (pi0_min**2 + self.c**2) ** 0.5
        return 1 / floor if floor > 0 else None

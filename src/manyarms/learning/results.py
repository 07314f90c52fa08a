"""What learning gives back, and what it says on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.validate import describe
from manyarms.certificates import Certificate
from manyarms.errors import InvalidInput
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.policies.two_stage import TwoStagePolicy

Learnable = SoftmaxPolicy | SupportSoftmaxPolicy | TwoStagePolicy | GaussianPolicy | MixedLogitPolicy
"""The policies that can be learned."""


def require_learnable(policy: object) -> None:
    """Refuse what cannot be learned."""
    if not isinstance(policy, Learnable):
        expected = "a policy that can be learned: softmax, support softmax, two-stage, Gaussian, mixed-logit"
        raise InvalidInput("policy", describe(policy), expected)


@dataclass(frozen=True, repr=False)
class Epoch(Shown):
    """A line of the history."""

    epoch: int  # from 1
    objective: float  # mean over the epoch's rows, each batch before its step
    validation: float | None  # self-normalised estimate on held-out rows
    score: float | None  # whatever the caller measures, such as a true value
    rows_per_second: float
    learning_rate: float  # of the last batch


@dataclass(frozen=True, repr=False)
class Moment(Shown):
    """Where a run stands, for a progress display."""

    epoch: int  # from 0
    batch: int  # from 0
    epochs: int
    batches: int  # in an epoch
    objective: float  # mean over this epoch so far; NaN where a GPU was not asked
    rows_per_second: float
    seconds_left: float
    history: tuple[Epoch, ...]
    doing: str = ""  # what happens before the first batch, where that takes a while


class History(Shown, tuple[Epoch, ...]):
    """The epochs in order; printed, a table of ten of them at most."""

    __slots__ = ()

    def _table(self) -> Table:
        if not self:
            return Table("no epochs")
        first, last = self[0], self[-1]
        shown = [self[i] for i in sorted({round(j * (len(self) - 1) / 9) for j in range(10)})]
        columns = ["epoch", "objective", "validation", "score", "learning rate", "rows per second"]
        rows = [
            (
                one.epoch,
                one.objective,
                one.validation,
                one.score,
                f"{one.learning_rate:.3g}",
                f"{one.rows_per_second:,.0f}",
            )
            for one in shown
        ]
        kept = [i for i in range(len(columns)) if i not in (2, 3) or any(row[i] is not None for row in rows)]
        return Table(
            f"{counted(len(self), 'epoch')}: the objective went from {number(first.objective)} to {number(last.objective)}",
            [columns[i] for i in kept],
            [[row[i] for i in kept] for row in rows],
            [f"{len(rows)} of {len(self):,} epochs"] if len(rows) < len(self) else [],
        )


@dataclass(frozen=True, repr=False)
class Learned(Shown):
    """A learned policy (plain arrays: it is saved and decides without PyTorch) and how it was found."""

    policy: SoftmaxPolicy | SupportSoftmaxPolicy | TwoStagePolicy | GaussianPolicy | MixedLogitPolicy
    history: tuple[Epoch, ...]
    objective: str
    settings: dict[str, object] = field(default_factory=dict)
    certificate: Certificate | None = None  # of policies learned by a PACBayes objective
    notes: tuple[str, ...] = ()  # what to know of the result

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History(self.history))

    def _table(self) -> Table:
        history = History(self.history)._table()
        certified = [] if self.certificate is None else [self.certificate._table()]
        notes = [f"note: {text}" for text in self.notes]
        return Table(f"{self.policy!r}, learned by {self.objective}", notes=notes, parts=[history, *certified])


__all__ = ["Epoch", "History", "Learnable", "Learned", "Moment", "require_learnable"]

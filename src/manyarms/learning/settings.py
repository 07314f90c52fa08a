"""How a policy is to be learned: every choice in one checked place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from manyarms._base import validate
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.learning.sampled import Sampler

Train = Literal["actions", "encoder", "both"]
Towards = Literal["zero", "start", "logging"]
Precision = Literal["fp64", "fp32", "tf32", "bf16"]

OPTIMISERS = ("adam", "sgd", "adagrad")
LARGEST = 1e30  # of what steps are multiplied by: a float32 must hold it, and what an optimiser makes of it
SCHEDULES = ("constant", "linear", "cosine", "exponential", "one-cycle")


@dataclass(frozen=True)
class TrainingSettings:
    """What `learn` was asked to do, less the log, the policy and the objective.

    epochs: passes over the log. batch: rows in a step. learning_rate: the largest; `schedule` says how it goes: constant, linear
    (to 0), cosine (to 0), exponential (to a hundredth), one-cycle (up to it, then to 0). optimiser: adam, sgd, or adagrad (one
    number per row: the cheapest adaptive one where only listed actions are touched). l2: adds l2/2 ||theta - anchor||^2 to the
    loss; `towards` says which anchor: zero, the start, or the logging policy's parameters. train: the actions' parameters, the
    encoder's, or both; unless given, the encoder's where the policy has one. precision: fp32, or fp64 for small problems; on a
    GPU also tf32 or bf16 for products, with sums in fp32. sampler: None for the exact softmax. learn_sigma,
    draws: for randomised policies, whether sigma is learned, and how many draws make a probability (None: by quadrature for
    Gaussian policies, 32 draws for mixed-logit ones). patience: stop after that many
    epochs without a better validation, and keep the best policy.
    """

    epochs: int = 10
    batch: int = 256
    learning_rate: float = 1e-3
    schedule: str = "constant"
    optimiser: str = "adam"
    l2: float = 0.0
    towards: Towards = "zero"
    train: Train | None = None
    precision: Precision = "fp32"
    patience: int | None = None
    seed: int = 0
    sampler: Sampler | None = None
    learn_sigma: bool = True
    draws: int | None = None

    def __post_init__(self) -> None:
        # what the checks give is what is used: plain numbers, where NumPy's own may overflow (np.uint8(20) epochs of 20 batches)
        self._set("epochs", validate.count("epochs", self.epochs))
        self._set("batch", validate.count("batch", self.batch))
        rate = validate.number("learning_rate", validate.positive("learning_rate", self.learning_rate), most=LARGEST)
        self._set("learning_rate", rate)
        self._set("l2", validate.number("l2", self.l2, least=0, most=LARGEST))
        self._set("seed", validate.seed(self.seed))
        self._set("learn_sigma", validate.flag("learn_sigma", self.learn_sigma))
        if self.draws is not None:
            self._set("draws", validate.count("draws", self.draws))
        if self.patience is not None:
            self._set("patience", validate.count("patience", self.patience))
        if self.sampler is not None and not callable(getattr(self.sampler, "draw", None)):
            expected = "a sampler, such as SampledSoftmax(1000), or None"
            raise InvalidInput("sampler", validate.describe(self.sampler), expected)
        one_of("schedule", self.schedule, SCHEDULES)
        one_of("optimiser", self.optimiser, OPTIMISERS)
        one_of("towards", self.towards, ("zero", "start", "logging"))
        one_of("train", self.train, (None, "actions", "encoder", "both"))
        one_of("precision", self.precision, ("fp64", "fp32", "tf32", "bf16"))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def described(self) -> dict[str, object]:
        """All of it in words and numbers, for checkpoints and reports."""
        return {**vars(self), "sampler": repr(self.sampler)}


def one_of(name: str, value: object, allowed: tuple[str | None, ...]) -> None:
    """Refuse a value that is not on the list."""
    if not isinstance(value, str | None) or value not in allowed:
        raise InvalidInput(name, validate.describe(value), "one of " + ", ".join(map(repr, allowed)))


__all__ = ["OPTIMISERS", "SCHEDULES", "Precision", "Towards", "Train", "TrainingSettings", "one_of"]

"""Supervised to bandit: labelled rows as a logged bandit whose every value is known (thesis, Section 8.5 and Appendix E.3).

An action is a label and the reward of playing it is 1 where it is right. With phi(x) = x / ||x||,

    mu_0         a linear softmax without bias, fitted to 5 % of the training rows (cross-entropy, Adam)
    pi_0(a|x)    in proportion to exp(eta_0 phi(x)^T mu_0,a):    better the larger eta_0, uniform at 0, worse than that below 0
    a log        one round for each of the other 95 %:           A_i ~ pi_0(.|X_i), R_i = 1[A_i = y_i]
    a prior      N(eta_0 mu_0, sigma^2 I):                       it has seen none of the rows that are logged
    a value      the mean of pi(y_i|x_i), exactly:               on the test rows, or on the rows that logs come from
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypedDict, Unpack, get_args

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.worlds.image_files import ImageSet, read_arrays, read_images
from manyarms.worlds.rounds import Value, policy_over

SupervisedPart = Literal["test", "logged"]
Family = Literal["gaussian", "mixed-logit", "softmax"]
MOST_RATE, MOST_ETA = 1e3, 1e6  # beyond them a softmax is 0 or 1, and then no number
MOMENTS = (0.9, 0.999, 1e-8)  # of Adam: decay of the mean and of the square, and what keeps a division from 0 / 0


@dataclass(frozen=True)
class Fit:
    """How mu_0 is fitted: the thesis's settings (Appendix E.3.1, and its code for the batch)."""

    share: float = 0.05
    epochs: int = 10
    rate: float = 0.1
    decay: float = 1e-6
    batch: int = 128

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "share", validate.number("share", self.share, above=0, below=1))
        put(self, "epochs", validate.count("epochs", self.epochs))
        put(self, "rate", validate.number("rate", self.rate, above=0, most=MOST_RATE))
        put(self, "decay", validate.not_negative("decay", self.decay))
        put(self, "batch", validate.count("batch", self.batch))


class WorldOptions(TypedDict, total=False):
    """What every way to make a SupervisedWorld takes, as its constructor explains."""

    rows: int | None
    test_rows: int | None
    normalise: bool
    fit: Fit | None
    provenance: str
    seed: int


class SupervisedWorld:
    """Labelled rows as a bandit.

    X, y, X_test, y_test: rows of numbers and their labels; labels may be any numbers or words, and actions are their ranks
    (`labels`). rows, test_rows: keep this many, drawn at random. normalise: divide every row by its l2 norm. fit: of the logging
    policy. seed: which rows are kept, which 5 % the logging policy learns from, and in what order.
    """

    def __init__(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        X_test: npt.ArrayLike,
        y_test: npt.ArrayLike,
        *,
        rows: int | None = None,
        test_rows: int | None = None,
        normalise: bool = True,
        fit: Fit | None = None,
        provenance: str = "given rows",
        seed: int = 0,
    ) -> None:
        self.fit = Fit() if fit is None else validate.instance("fit", fit, Fit, "a Fit, or None")
        self.provenance, normalise = str(provenance), validate.flag("normalise", normalise)
        trained, tested, split, order = (
            np.random.default_rng(child) for child in np.random.SeedSequence(validate.seed(seed)).spawn(4)
        )
        train_features, train_labels = _some("X", X, "y", y, rows, trained)
        test_features, test_labels = _some("X_test", X_test, "y_test", y_test, test_rows, tested)
        if train_features.shape[1] != test_features.shape[1]:
            came = f"rows of length {test_features.shape[1]}"
            raise InvalidInput("X_test", came, f"of length {train_features.shape[1]}, as in X")
        self.labels, numbers = np.unique(train_labels, return_inverse=True)
        if len(self.labels) < 2:
            raise InvalidInput("y", "one label", "at least two, or there is nothing to choose")
        place = np.searchsorted(self.labels, test_labels).clip(max=len(self.labels) - 1)
        if (self.labels[place] != test_labels).any():
            raise InvalidInput("y_test", "labels that y does not have", "labels of y")
        for features in (train_features, test_features) if normalise else ():
            _normalise(features)
        count = math.ceil(self.fit.share * len(train_features))
        if count >= len(train_features):
            raise InvalidInput("X", f"{len(train_features)} rows", "enough to leave some to be logged")
        chosen = split.permutation(len(train_features))
        fitted, self._logged_rows = np.sort(chosen[:count]), np.sort(chosen[count:])
        targets = numbers.reshape(-1).astype(np.int64)
        self.mu0 = fit_softmax(train_features[fitted], targets[fitted], len(self.labels), self.fit, order)
        self.actions, self.dim = self.mu0.shape  # K, the number of labels, and d, the length of a row
        self.rows = len(self._logged_rows)  # of a log, unless told otherwise: those that mu_0 was not fitted to
        self._rows: dict[SupervisedPart, tuple[Array, Ints]] = {
            "logged": (train_features[self._logged_rows], targets[self._logged_rows]),
            "test": (test_features, place.astype(np.int64)),
        }

    # ---- where rows come from

    @classmethod
    def from_images(
        cls,
        name: ImageSet = "fashion-mnist",
        folder: str | Path | None = None,
        *,
        shrink: int = 1,
        **options: Unpack[WorldOptions],
    ) -> Self:
        """MNIST, FashionMNIST, EMNIST or CIFAR-100; shrink: average over squares of this many pixels."""
        pictures = read_images(name, folder)
        channels = 3 if name == "cifar100" else 1
        train, test = (shrunk(part, shrink, channels) for part in (pictures.train, pictures.test))
        options.setdefault("provenance", pictures.provenance)
        return cls(train, pictures.train_classes, test, pictures.test_classes, **options)

    @classmethod
    def from_features(cls, path: str | Path, **options: Unpack[WorldOptions]) -> Self:
        """An .npz file with x_train (n, d), y_train (n,), x_test and y_test: features that a network made of pictures."""
        file = Path(path)
        if not os.path.isfile(file):
            raise DataError(f"{file}: no such file")
        X, y, X_test, y_test = read_arrays(file)
        options.setdefault("provenance", f"features of {file.name}")
        return cls(X, y, X_test, y_test, **options)

    @classmethod
    def from_data(
        cls, X: npt.ArrayLike, y: npt.ArrayLike, *, test_share: float = 0.2, **options: Unpack[WorldOptions]
    ) -> Self:
        """Any rows and labels, as scikit-learn's loaders give them; a part, drawn at random, is for testing."""
        test_share = validate.number("test_share", test_share, above=0, below=1)
        features, labels = _pair("X", X, "y", y)
        order = np.random.default_rng([validate.seed(options.get("seed", 0)), 1]).permutation(len(labels))
        cut = max(1, round(test_share * len(labels)))
        if cut >= len(labels):
            raise InvalidInput("X", f"{len(labels)} rows", "enough for training and testing")
        return cls(features[order[cut:]], labels[order[cut:]], features[order[:cut]], labels[order[:cut]], **options)

    # ---- what it is

    def __repr__(self) -> str:
        rows = f"{len(self._logged_rows):,} logged and {len(self._rows['test'][1]):,} test rows"
        return f"SupervisedWorld(actions={self.actions}, dim={self.dim}, {rows}; {self.provenance})"

    def contexts(self, part: SupervisedPart = "test") -> Array:
        """phi of the rows of a part, (n, d)."""
        return self._part(part)[0]

    def targets(self, part: SupervisedPart = "test") -> Ints:
        """The right actions of a part, (n,)."""
        return self._part(part)[1]

    # ---- policies and logs

    def logging(self, eta0: float) -> SoftmaxPolicy:
        """pi_0 at an inverse temperature, which may be 0 or negative."""
        return SoftmaxPolicy(validate.number("eta0", eta0, least=-MOST_ETA, most=MOST_ETA) * self.mu0)

    def prior(
        self,
        eta0: float,
        family: Family = "gaussian",
        sigma: float = 1.0,
        *,
        nodes: int | None = None,
        draws: int = 2048,
    ) -> GaussianPolicy | MixedLogitPolicy | SoftmaxPolicy:
        """What learning starts from: theta ~ N(eta_0 mu_0, sigma^2 I), or, without a distribution, softmax at eta_0 mu_0.

        nodes: of a Gaussian policy's quadrature (None: its usual ones); draws: of a mixed-logit policy's simulation.
        """
        validate.one_of("family", family, get_args(Family))
        start = self.logging(eta0)
        if family == "gaussian":
            return GaussianPolicy(start.actions, sigma, nodes=nodes)
        return MixedLogitPolicy(start.actions, sigma, draws=draws) if family == "mixed-logit" else start

    def log(self, eta0: float, seed: int = 0, rows: int | None = None) -> LoggedData:
        """What pi_0 writes, with exact propensities and pi_0 itself.

        One round for each row that mu_0 was not fitted to, in order, with its number as event id. rows: instead this many rounds
        with rows drawn independently, as from a population that consists of them: then value(policy, "logged") is the truth
        that bounds speak of.
        """
        rng = np.random.default_rng(validate.seed(seed))
        X, y = self._rows["logged"]
        if rows is not None:
            rows = validate.room("rows", validate.count("rows", rows), 24 * self.dim, f"rows of {self.dim:,} numbers")
        drawn = None if rows is None else rng.integers(len(y), size=rows)
        contexts, targets = (X, y) if drawn is None else (X[drawn], y[drawn])
        logging = self.logging(eta0)
        actions = logging.sample_rows(contexts, rng)
        return LoggedData(
            contexts,
            actions,
            (actions == targets).astype(np.float64),
            self.actions,
            propensities=logging.probabilities_of(contexts, actions),
            logging=logging,
            event_ids=self._logged_rows.astype(np.str_) if drawn is None else None,
            notes=(f"made from {self.provenance}",),
        )

    def value(self, policy: Policy, part: SupervisedPart = "test") -> Value:
        """The expected reward of a policy: the mean of pi(y_i|x_i), without drawing actions."""
        policy_over(policy, self.actions)
        contexts, targets = self._part(part)
        return Value.of(policy.probabilities_of(contexts, targets))

    def _part(self, part: SupervisedPart) -> tuple[Array, Ints]:
        validate.one_of("part", part, get_args(SupervisedPart))
        return self._rows[part]


def fit_softmax(X: Array, y: Ints, actions: int, fit: Fit, rng: np.random.Generator) -> Array:
    """mu (K, d), float64: the least mean of -log softmax(X mu^T)_y plus decay/2 ||mu||^2, by Adam from 0.

    Batches are a fresh random order every epoch; the same generator gives the same numbers.
    """
    mu, mean, square = (np.zeros((actions, X.shape[1])) for _ in range(3))
    first, second, tiny = MOMENTS
    step = 0
    for _ in range(fit.epochs):
        order = rng.permutation(len(y))
        for start in range(0, len(y), fit.batch):
            index = order[start : start + fit.batch]
            scores = X[index] @ mu.T
            scores -= scores.max(axis=1, keepdims=True)
            p = np.exp(scores)
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(index)), y[index]] -= 1.0
            gradient = p.T @ X[index] / len(index) + fit.decay * mu
            step += 1
            mean += (1 - first) * (gradient - mean)
            square += (1 - second) * (gradient**2 - square)
            mu -= fit.rate / (1 - first**step) * mean / (np.sqrt(square / (1 - second**step)) + tiny)
    return mu


def shrunk(pictures: npt.NDArray[np.uint8], factor: int, channels: int = 1) -> AnyArray:
    """Square pictures (n, side * side * channels) averaged over squares of factor x factor pixels."""
    if validate.count("shrink", factor) == 1:
        return pictures
    side = math.isqrt(pictures.shape[1] // channels)
    if side * side * channels != pictures.shape[1] or side % factor:
        raise InvalidInput("shrink", factor, f"a divisor of the pictures' side, {side}")
    small = side // factor
    shape = (len(pictures), small, factor, small, factor, channels)
    return np.asarray(pictures.reshape(shape).mean(axis=(2, 4), dtype=np.float32).reshape(len(pictures), -1))


def _pair(x_name: str, X: npt.ArrayLike, y_name: str, y: npt.ArrayLike) -> tuple[AnyArray, AnyArray]:
    features = np.asarray(X) if type(X) is np.ndarray and X.dtype.kind in "fiub" else validate.as_floats(x_name, X)
    if features.ndim != 2 or not features.size:
        raise InvalidInput(x_name, f"an array of {features.dtype}, shape {features.shape}", "numbers, rows by columns")
    if np.ma.is_masked(y):
        raise InvalidInput(y_name, validate.describe(y), "labels, none of them masked")
    try:
        labels = np.asarray(y)
    except ValueError as error:  # lists of different lengths
        raise InvalidInput(y_name, validate.describe(y), f"{len(features)} labels, integers or words") from error
    if labels.shape != (len(features),) or labels.dtype.kind not in "iubU":
        came = f"an array of {labels.dtype}, shape {labels.shape}"
        raise InvalidInput(y_name, came, f"{len(features)} labels, integers or words")
    return features, labels


def _some(
    x_name: str, X: npt.ArrayLike, y_name: str, y: npt.ArrayLike, rows: int | None, rng: np.random.Generator
) -> tuple[Array, AnyArray]:
    """A copy of all rows or of some, in their order, as float64."""
    features, labels = _pair(x_name, X, y_name, y)
    number = len(labels) if rows is None else validate.count("rows", rows)
    if number < len(labels):
        index = np.sort(rng.permutation(len(labels))[:number])
        features, labels = features[index], labels[index]
    return validate.as_floats(x_name, np.array(features, dtype=np.float64)), labels


def _normalise(features: Array) -> None:
    """Rows over their l2 norm, in place; a row of zeros stays one."""
    norms = np.sqrt(np.einsum("nd,nd->n", features, features))
    features /= np.where(norms > 0, norms, 1.0)[:, None]


__all__ = ["Family", "Fit", "SupervisedPart", "SupervisedWorld", "fit_softmax", "shrunk"]

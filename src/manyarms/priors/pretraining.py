"""From offline estimates of action parameters to a diffusion prior (thesis, Appendix B.6.2).

    theta_1, ..., theta_n  --pretrain-->  Pretrained  --prior(K)-->  DiffusionPrior  --dTS-->  an agent

**Units.** With m the mean of the estimates and V = A A^T their covariance (shrunk a little, see `_covariance`),
z_0 = A^-1 (theta - m) has mean 0 and covariance I.

**Schedule.** z_l = sqrt(alpha_l) z_(l-1) + sqrt(beta_l) noise with alpha_l = 1 - beta_l, so that
z_l = sqrt(abar_l) z_0 + sqrt(1 - abar_l) eps, abar_l = alpha_1 ... alpha_l. Mean 0 and covariance I are kept at every step.
A schedule is a function abar(s) of s = l / L that falls from 1 to nearly 0, and
beta_l = 1 - abar(l / L) / abar((l - 1) / L), at most 0.999: every depth goes all the way to noise, in steps of its own size.

    "cosine"   abar(s) = cos^2(pi/2 (s + 0.008) / 1.008), up to a factor (Nichol and Dhariwal, 2021). Even steps, also where
               there are few of them: beta_1 = 0.5 at L = 2; abar_L = 5e-4 at L = 2, 2e-6 at L = 40, 2e-7 at L = 100
    "linear"   abar(s) = exp(-0.1 s - 9.95 s^2): Ho et al.'s beta from 1e-4 to 0.02 over 1,000 steps, taken as a rate and
               integrated over each of the L steps. abar_L = 4e-5 (8e-5 at L = 2), but beta_1 = 0.92 at L = 2

**Links.** The noise predictor eps(z, l) (denoiser.py) gives the mean of the step back (Ho et al., 2020),

    g_l(z) = (z - beta_l / sqrt(1 - abar_l) eps(z, l)) / sqrt(alpha_l) = sqrt(alpha_l) z - k_l N(z, l),
    k_l = beta_l sqrt(abar_(l-1) / (1 - abar_l)),    eps(z, l) = sqrt(1 - abar_l) z + sqrt(abar_l) N(z, l), N the layers.

The approximation that carries evidence up the chain (beliefs/messages.py) takes every link for about the identity, so the
latents must be in the units of theta: psi_l = A z_l + c_l m with c_l = sqrt(abar_l), except c_L = 0, since the top of a
chain has mean 0. Then

    f_l(psi) = sqrt(alpha_l) psi - k_l A N(A^-1 (psi - c_l m), l) + (c_(l-1) - sqrt(alpha_l) c_l) m
    Sigma_l  = s_l V for l <= L,    Sigma_(L+1) = V

Each f_l is a NetworkLink: plain matrix products, no PyTorch.

**Variances** s_l, fixed and rising with l as in the thesis. "beta": s_l = beta_l, exact where the estimates are Gaussian:
with N = 0 the chain draws theta ~ N(m, V) at any depth. "posterior": s_l = beta_l (1 - abar_(l-1)) / (1 - abar_l), exact
where all estimates are one point, and too narrow otherwise where steps are few (on a Swiss roll its draws are half as far
again from the data at L = 5 to 40). It is 0 at l = 1, where s_2 stands in for it, as in Ho et al.'s code.

**Sigma_1** in a prior depends on how the chain is read (`DiffusionPrior`).
"schedule": s_1 V. Right for one chain per action: theta_a is then a draw of the diffusion.
"spread": V. What a chain shared by all actions needs. All theta_a lie around the one point p = f_1(psi_1) there, while in
truth they are as far apart as the estimates: of all N(p, S) the one nearest to the estimates' law (in the Kullback-Leibler
divergence that the likelihood of many actions counts) has p = m and S = V. With s_1 V the shared chain would be certain
that all actions are alike. A number or a matrix: Sigma_1 as it is, in the units of the estimates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import getattr_static
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import storage, validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms._base.typing import AnyArray, Array, loose
from manyarms.errors import InvalidInput, MissingExtra
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.priors.estimates import of_moderate_size
from manyarms.priors.links import NetworkLink, layer_arrays, restored_layers

KIND = "pretrained-diffusion"
TABLES = ("mean", "unit", "betas", "steps", "variances")
# optimiser steps unless epochs are given, and steps between two looks at the held-out rows
BUDGET, EVERY = 6000, 50
LARGEST_BETA = 0.999
# a schedule of the caller's own must get so near to pure noise, by steps that can be told from none
LARGEST_REST = 0.05
SMALLEST_BETA = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class History(Shown):
    """Losses on the way: optimiser steps, mean training loss since the check before, loss on the held-out rows (NaN if none)."""

    steps: Array
    train: Array
    held_out: Array

    @property
    def best(self) -> int:
        """The optimiser step whose weights were the best."""
        if np.isnan(self.held_out).all():
            return int(self.steps[-1])
        return int(self.steps[int(np.nanargmin(self.held_out))])

    def _table(self) -> Table:
        places = sorted({round(j * (len(self.steps) - 1) / 9) for j in range(10)}) if len(self.steps) else []
        rows = [(int(self.steps[i]), float(self.train[i]), float(self.held_out[i])) for i in places]
        title = f"losses at {counted(len(self.steps), 'step')}" + (f"; the best at {self.best:,}" if rows else "")
        return Table(title, ("step", "training loss", "held-out loss"), rows)


@dataclass(frozen=True, eq=False, repr=False)
class Pretrained(Shown):
    """A diffusion model of action parameters, ready to be a prior. Made by `pretrain`; formulas in manyarms.priors.pretraining.

    mean (d,), unit (d, d): m and A. betas (L,), variances (L,): the schedule and s_1, ..., s_L. layers, steps: the network N, in
    standardised units, and e_1, ..., e_L, what each step adds to its first layer.
    """

    mean: Array
    unit: Array
    betas: Array
    variances: Array
    layers: tuple[tuple[Array, Array], ...]
    steps: Array
    history: History
    first_covariance: str | float | None
    rows: int
    seconds: float

    def __repr__(self) -> str:
        return f"Pretrained(depth={self.depth}, dim={self.dim}, from {self.rows:,} rows in {self.seconds:.1f} s)"

    @property
    def depth(self) -> int:
        """L."""
        return len(self.betas)

    @property
    def dim(self) -> int:
        """d."""
        return len(self.mean)

    @property
    def covariance(self) -> Array:
        """V, the covariance of the estimates."""
        return self.unit @ self.unit.T

    @cached_property
    def links(self) -> tuple[NetworkLink, ...]:
        """f_1, ..., f_L."""
        return chain_links(self.mean, self.unit, self.betas, self.layers, self.steps)

    def prior(
        self, actions: int, shared: bool = False, *, first_covariance: str | npt.ArrayLike | None = None
    ) -> DiffusionPrior:
        """The diffusion prior over K actions, with one chain per action, or one shared by all.

        first_covariance: the rule for Sigma_1, in place of the one given to `pretrain`. Where neither is given it is
        "schedule" for one chain per action and "spread" for a shared one.
        """
        rule = self.first_covariance if first_covariance is None else first_covariance
        shared = validate.flag("shared", shared)
        if rule is None:
            rule = "spread" if shared else "schedule"
        first: npt.ArrayLike = rule
        if isinstance(rule, str):
            named = {"schedule": self.variances[0] * self.covariance, "spread": self.covariance}
            if rule not in named:
                raise InvalidInput("first_covariance", repr(rule), "'schedule', 'spread', a number or a matrix")
            first = named[rule]
        above = [variance * self.covariance for variance in self.variances[1:]]
        return DiffusionPrior(actions, self.dim, self.links, [first, *above, self.covariance], shared)

    def sample(self, n: int, seed: int | np.random.Generator | None = 0) -> Array:
        """(n, d) independent draws of an action's parameter."""
        return self.prior(n, first_covariance="schedule").draw(validate.seeded(seed))

    def save(self, folder: Path | str) -> None:
        """Write everything to a folder; PyTorch is needed neither for this nor for `manyarms.load`."""
        spec = {"layers": len(self.layers), "first_covariance": self.first_covariance, "rows": self.rows}
        arrays = {name: getattr(self, name) for name in TABLES} | layer_arrays(self.layers)
        told = self.history
        arrays["history"] = np.stack([told.steps, told.train, told.held_out], axis=1)
        storage.save(folder, KIND, {**spec, "seconds": self.seconds}, arrays)

    def _table(self) -> Table:
        sizes = " -> ".join(str(len(bias)) for _, bias in self.layers)
        title = (
            f"a diffusion model of {counted(self.rows, 'row')} of length {self.dim:,}, in {counted(self.depth, 'step')}"
        )
        network = ("network", f"{self.dim} -> {sizes}")
        return Table(title, rows=[network, ("seconds", f"{self.seconds:.1f}")], parts=[self.history._table()])


@storage.LOADERS.register(KIND)
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Pretrained:
    told = loose(spec)
    named: dict[str, Any] = {n: arrays[n] for n in TABLES}
    layers = restored_layers(arrays, told["layers"])
    rest = {n: told[n] for n in ("first_covariance", "rows", "seconds")}
    made = Pretrained(**named, layers=layers, history=History(*arrays["history"].T), **rest)
    _check_saved(made)
    return made


def _check_saved(made: Pretrained) -> None:
    """Whether what was saved is a prior: shapes that belong together, a schedule, a covariance, layers that chain."""
    d = len(validate.as_array("mean", made.mean, (None,)))
    validate.as_array("unit", made.unit, (d, d))
    validate.covariance("unit", made.covariance)
    L = len(validate.as_array("betas", made.betas, (None,)))
    validate.as_array("steps", made.steps, (L, len(made.layers[0][1])))
    validate.as_array("variances", made.variances, (L,))
    for name, values, most in (("betas", made.betas, 1.0), ("variances", made.variances, np.inf)):
        if not ((values > 0) & (values < most)).all():
            raise InvalidInput(
                name, validate.describe(values), f"numbers above 0{'' if np.isinf(most) else ' and below 1'}"
            )
    for matrix, vector in made.layers:
        validate.as_array("layers", matrix, (None, None))
        validate.as_array("layers", vector, (None,))
    validate.count("rows", made.rows)
    validate.not_negative("seconds", made.seconds)
    made.prior(1)  # checks links and the rule for the first covariance


def pretrain(
    parameters: npt.ArrayLike,
    depth: int = 40,
    *,
    hidden: int | Sequence[int] = (64, 64),
    schedule: str | npt.ArrayLike = "cosine",
    variances: str = "beta",
    first_covariance: str | float | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    learning_rate: float = 3e-3,
    held_out: float = 0.1,
    patience: int = 40,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int, float, float], None] | None = None,
) -> Pretrained:
    """Learn a diffusion prior from offline estimates of action parameters, (n, d). Needs PyTorch.

    depth: L, the number of steps, and of latents.
    hidden: widths of the network's hidden layers. One number is the thesis's two-layer network; the two layers of the default
    bring draws about twice as near to the data, on a Swiss roll as on mixtures in 20 and 64 dimensions.
    schedule: "cosine", "linear", or beta_1, ..., beta_L themselves. variances, first_covariance: see manyarms.priors.pretraining.
    epochs: passes over the estimates; by default 6,000 steps of Adam whatever n is. (The thesis's 20,000 epochs are 20,000
    steps where n is at most a batch, and 100,000 at n = 10,000.)
    batch: rows a step, by default min(2048, n) as in the thesis.
    learning_rate: at the beginning; it falls along a cosine to a hundredth. (The thesis keeps 1e-3, for many more steps.)
    held_out: the part of the estimates that is not trained on. The loss on them, with noise drawn once, is looked at every
    50 steps; the weights of the best look are kept, and `patience` looks without a better one end the training. The first
    look is at the Gaussian with the estimates' mean and covariance, which a handful of estimates can fall back on.
    With 0 it trains to the end.
    progress: called after every look with the step, the number of steps, the training loss and the held-out loss.
    """
    started = time.perf_counter()
    data = _estimates(parameters)
    depth, seed = validate.count("depth", depth), validate.seed(seed)
    validate.room("depth", depth, 16 * data.shape[1] ** 2 + 64, "layers")
    betas = noise_schedule(schedule, depth)
    widths = _widths(hidden, data.shape[1])
    step_variances = _variances(variances, betas)
    if isinstance(first_covariance, str):
        if first_covariance not in ("schedule", "spread"):
            raise InvalidInput("first_covariance", repr(first_covariance), "'schedule', 'spread' or a number")
    elif first_covariance is not None:
        first_covariance = validate.positive("first_covariance", first_covariance)
    share = validate.probability("held_out", held_out)
    aside = min(max(1, round(share * len(data))), len(data) - 1) if share else 0
    batch = min(2048, len(data) - aside) if batch is None else validate.count("batch", batch)
    validate.room("batch", batch, 16 * (sum(widths) + 4 * data.shape[1]), "rows a step")
    if progress is not None and not callable(progress):
        raise InvalidInput("progress", validate.describe(progress), "a function of four numbers, or None")
    if not isinstance(device, str):
        raise InvalidInput("device", validate.describe(device), "the name of a device, such as 'cpu' or 'cuda'")
    a_pass = -(-(len(data) - aside) // batch)
    budget = BUDGET if epochs is None else validate.count("epochs", epochs) * a_pass
    rate, patience = validate.positive("learning_rate", learning_rate), validate.count("patience", patience)
    try:
        from manyarms.priors import denoiser
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtra("torch", "torch", "pre-training a diffusion prior") from error

    mean, unit = data.mean(axis=0), cast(Array, np.linalg.cholesky(_covariance(data)))
    rows = cast(Array, np.linalg.solve(unit, (data - mean).T).T)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    recipe = denoiser.Recipe(widths, budget, batch, rate, EVERY, patience, seed, device)
    trained = denoiser.train(rows[aside:], rows[:aside], _rest(betas), recipe, progress)
    history = History(*trained.losses.T)
    return Pretrained(
        mean, unit, betas, step_variances, trained.layers, trained.steps, history, first_covariance, len(data),
        time.perf_counter() - started,
    )  # fmt: skip


# ---- the chain


def noise_schedule(schedule: str | npt.ArrayLike, depth: int) -> Array:
    """beta_1, ..., beta_L by the named rule (above), or the caller's own, checked."""
    s = np.arange(depth + 1) / depth
    if isinstance(schedule, str):
        if schedule == "cosine":
            rest = np.cos(np.pi / 2 * (s + 0.008) / 1.008) ** 2
        elif schedule == "linear":
            rest = np.exp(-0.1 * s - 9.95 * s**2)
        else:
            raise InvalidInput("schedule", repr(schedule), "'cosine', 'linear', or the betas themselves")
        return cast(Array, np.minimum(1 - rest[1:] / rest[:-1], LARGEST_BETA))
    betas = validate.owned(validate.as_array("schedule", schedule, (None,)))
    if len(betas) != depth:
        raise InvalidInput(
            "depth", f"{depth} for a schedule of {len(betas)} steps", "as many layers as the schedule has steps"
        )
    if (betas <= 0).any() or (betas >= 1).any():
        raise InvalidInput("schedule", "a beta outside (0, 1)", "betas above 0 and below 1")
    if (betas < SMALLEST_BETA).any():
        raise InvalidInput("schedule", f"a beta of {betas.min():.2g}", f"betas of at least {SMALLEST_BETA:g}")
    left = float(np.prod(1 - betas))
    if left > LARGEST_REST:
        raise InvalidInput(
            "schedule", f"betas that leave abar_L = {left:.2g}", f"larger betas, or more: abar_L below {LARGEST_REST}"
        )
    return betas


def _rest(betas: Array) -> Array:
    """abar_1, ..., abar_L."""
    return cast(Array, np.cumprod(1 - betas))


def _variances(rule: str, betas: Array) -> Array:
    """s_1, ..., s_L."""
    if not isinstance(rule, str) or rule not in ("beta", "posterior"):
        raise InvalidInput("variances", validate.describe(rule), "'beta' or 'posterior'")
    if rule == "beta":
        return betas.copy()
    abar = _rest(betas)
    out: Array = betas * (1 - np.r_[1.0, abar[:-1]]) / (1 - abar)
    out[0] = out[1] if len(out) > 1 else betas[0]
    return out


def chain_links(
    mean: Array, unit: Array, betas: Array, layers: Sequence[tuple[Array, Array]], steps: Array
) -> tuple[NetworkLink, ...]:
    """f_1, ..., f_L in the units of the estimates, from the network N in standardised units (formulas above)."""
    alphas, abar = 1 - betas, _rest(betas)
    shift = np.sqrt(np.r_[1.0, abar])  # c_0, ..., c_L
    shift[-1] = 0.0
    (A, c), *middle, (Z, z) = layers
    inwards = cast(Array, np.linalg.solve(unit.T, A.T).T)  # A_1 A^-1
    outwards, constant = unit @ Z, unit @ z
    links = []
    for l in range(1, len(betas) + 1):
        skip = np.sqrt(alphas[l - 1])
        k = betas[l - 1] * np.sqrt(abar[l - 1] / alphas[l - 1] / (1 - abar[l - 1]))
        entry = (inwards, c + steps[l - 1] - shift[l] * (inwards @ mean))
        exit_ = (-k * outwards, -k * constant + (shift[l - 1] - skip * shift[l]) * mean)
        links.append(NetworkLink(float(skip), [entry, *middle, exit_]))
    return tuple(links)


# ---- the estimates


def _estimates(parameters: npt.ArrayLike) -> Array:
    if getattr_static(parameters, "chunks", None) is not None:
        advice = "estimates (n, d), one row an action: manyarms.rewards.offline_estimates(log) has those of a log of any length"
        raise InvalidInput("parameters", f"a log, {type(parameters).__name__}", advice)
    data = validate.as_floats("parameters", parameters, "an array (n, d) of finite numbers, one row per action")
    if data.ndim != 2 or len(data) < 2 or not data.shape[1]:
        raise InvalidInput(
            "parameters", f"shape {data.shape}", "an array (n, d) with at least 2 rows, one action's estimate each"
        )
    if not (np.ptp(data, axis=0) > 1e-12 * np.abs(data).max()).any():
        raise InvalidInput(
            "parameters", f"{len(data)} equal rows", "estimates that differ: there is no spread to learn"
        )
    return of_moderate_size("parameters", data)


def _covariance(data: Array) -> Array:
    """The covariance S of the rows, drawn towards tr(S) / d I by Chen et al.'s (2010) oracle-approximating weight.

    The weight falls like 1 / n. It keeps few rows in many dimensions, or a coordinate without spread, from making V singular.
    """
    n, d = data.shape
    S = np.cov(data.T, bias=True).reshape(d, d)
    average = float(np.trace(S)) / d
    size, apart = float((S**2).sum()), float((S**2).sum()) - d * average**2
    weight = 0.0
    if apart > 0:
        weight = ((1 - 2 / d) * size + (d * average) ** 2) / ((n + 1 - 2 / d) * apart)
    weight = min(1.0, max(weight, 1e-6))
    return cast(Array, (1 - weight) * S + weight * average * np.eye(d))


def _widths(hidden: int | Sequence[int], dim: int) -> tuple[int, ...]:
    if isinstance(hidden, str | bytes):
        raise InvalidInput("hidden", validate.describe(hidden), "a width, or a list of widths")
    widths = hidden if isinstance(hidden, Sequence) else [hidden]
    if not len(widths):
        raise InvalidInput("hidden", "no hidden layer", "at least one width")
    found = tuple(validate.count("hidden", width) for width in widths)
    for before, width in zip((dim, *found), found, strict=False):
        validate.room("hidden", width, 64 * (before + dim), f"units on a layer of {before:,}")
    return found


__all__ = ["History", "Pretrained", "chain_links", "noise_schedule", "pretrain"]

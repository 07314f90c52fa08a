"""What `manyarms learn` is told, turned into objects: the objective, the policy to start from, the bound.

Nothing here needs PyTorch. What a bound and its certificate look at is declared by the command line alone, before a row is read;
a parameter that was not given is left to learning, and the certificate pays for the grid that it comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.storage import load
from manyarms._base.typing import AnyArray, Ints
from manyarms.agents.agent import Agent
from manyarms.bounds import BOUNDS, Grid
from manyarms.bounds.concentration import confidence
from manyarms.bounds.unified import AUTHORS
from manyarms.certificates import Certificate, Improvement, PolicyPrior, certify_with_improvement
from manyarms.cli._learn_inputs import Inputs
from manyarms.cli.options import one_of
from manyarms.errors import InvalidInput
from manyarms.estimators import ES, Heuristic, Objective, PACBayes, named
from manyarms.estimators.logging_policy import full_propensities
from manyarms.estimators.naming import parameters_of
from manyarms.estimators.neighbours import cluster_actions
from manyarms.estimators.pessimism import BY_AUTHORS
from manyarms.logs import Embeddings, LoggedData
from manyarms.logs.row_groups import RowGroups
from manyarms.logs.row_sketch import require_other_rows
from manyarms.policies import (
    GaussianPolicy,
    MixedLogitPolicy,
    Policy,
    Projection,
    SoftmaxPolicy,
    SupportedPolicy,
    SupportSoftmaxPolicy,
    TwoStagePolicy,
)
from manyarms.rewards import BeliefModel, RewardModel, dm_frequentist

POTEC = "potec"
FAMILIES = {"gaussian": GaussianPolicy, "mixed-logit": MixedLogitPolicy}
MOST_SMOOTHING = 0.9
Start = SoftmaxPolicy | SupportSoftmaxPolicy | TwoStagePolicy
Randomised = GaussianPolicy | MixedLogitPolicy


@dataclass(frozen=True)
class Choices:
    """What is to be learned.

    objective: a name of `manyarms.estimators`, or potec: offcem on a policy in two stages. parameters: tau, alpha, ...
    where given. heavy learns a vector for every action, light a projection of contexts onto given embeddings. support: all
    actions, or those of the logging policy. clusters: how many, by k-means on the embeddings, for mips, offcem and potec.
    neighbours: how many, for pc. model: a folder with a saved agent as reward model of dm, dr and offcem; unless given, a ridge
    regression for every action on the rows that are learned from.
    """

    objective: str = "clpi"
    parameters: dict[str, float | int | str] = field(default_factory=dict)
    parametrisation: str = "heavy"
    support: str = "all"
    clusters: int = 2000
    neighbours: int = 10
    model: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("--parametrisation", self.parametrisation, ("heavy", "light"))
        one_of("--support", self.support, ("all", "logging"))
        validate.count("--clusters", self.clusters)
        validate.count("--neighbours", self.neighbours)
        parameters_of(self.objective)  # refuses an unknown name
        if self.two_stages and self.support != "all":
            raise InvalidInput("--support", self.support, "all, with potec: its second stage picks the actions")

    @property
    def two_stages(self) -> bool:
        """Whether the policy picks a cluster first."""
        return self.objective.lower() == POTEC

    def build(self, train: LoggedData | RowGroups, embeddings: Embeddings | None) -> tuple[Objective, Start]:
        """The objective, and the policy to start from, for the rows that are learned from."""
        wanted, given = parameters_of(self.objective), dict[str, Any](self.parameters)
        labels: Ints | None = None
        model: RewardModel | None = None
        if "labels" in wanted:
            vectors = _needed(embeddings, f"clusters of actions, for {self.objective}").vectors
            given["labels"] = labels = cluster_actions(vectors, self.clusters, seed=self.seed)
        if "model" in wanted:
            given["model"] = model = self._model(train)
        if "embeddings" in wanted:
            given["embeddings"] = _needed(embeddings, f"neighbours of actions, for {self.objective}").vectors
            given["k"] = self.neighbours
        objective = named(self.objective, given)
        if not self.two_stages:
            return objective, self._start(train, None if embeddings is None else embeddings.vectors)
        assert labels is not None and model is not None and embeddings is not None
        return objective, self._two_stages(train, embeddings.vectors, labels, model)

    def _model(self, train: LoggedData | RowGroups) -> RewardModel:
        if self.model is None:
            return dm_frequentist(train)
        return BeliefModel(load(self.model, Agent).belief)

    def _start(self, train: LoggedData | RowGroups, vectors: AnyArray | None) -> SoftmaxPolicy | SupportSoftmaxPolicy:
        actions, encoder = self._scores(train, vectors, train.action_count)
        if self.support == "all":
            return SoftmaxPolicy(actions, encoder=encoder)
        if not isinstance(train.logging, SupportedPolicy):
            came = "no logging policy" if train.logging is None else f"{train.logging!r}, which plays any action"
            expected = "with --support logging, a folder with the policy that wrote the log, a policy with a restricted support"
            raise InvalidInput("--logging", came, expected)
        return SupportSoftmaxPolicy(actions, train.logging, encoder=encoder)

    def _two_stages(
        self, train: LoggedData | RowGroups, vectors: AnyArray, labels: Ints, model: RewardModel
    ) -> TwoStagePolicy:
        weights = getattr(model, "parameters", None)
        if weights is None:
            raise InvalidInput("--model", type(model).__name__, "none with potec: it takes a ridge regression")
        sizes = np.bincount(labels, minlength=int(labels.max()) + 1)
        centres = np.zeros((len(sizes), vectors.shape[1]), dtype=np.float32)
        np.add.at(centres, labels, vectors)
        clusters, encoder = self._scores(train, centres / np.maximum(sizes, 1)[:, None], len(sizes))
        return TwoStagePolicy(clusters, labels, np.asarray(weights, dtype=np.float32), encoder=encoder)

    def _scores(
        self, train: LoggedData | RowGroups, vectors: AnyArray | None, count: int
    ) -> tuple[AnyArray, Projection | None]:
        """The vectors that scores begin with, and for light ones the projection that is learned."""
        if vectors is None:
            if self.parametrisation == "light":
                raise InvalidInput("--actions", "none", "embeddings: a light policy learns a projection onto them")
            return np.zeros((count, train.dim), dtype=np.float32), None
        vectors = np.asarray(vectors, dtype=np.float32)
        if self.parametrisation == "heavy":
            # of another length: `learn` puts a projection between, and says so
            if vectors.shape[1] != train.dim and (self.two_stages or self.support != "all"):
                came = f"embeddings of length {vectors.shape[1]}"
                expected = f"the contexts' length, {train.dim}; --parametrisation light takes any length"
                raise InvalidInput("--actions", came, expected)
            return vectors, None
        # the identity where it fits, as the logging policy of such embeddings has it; else 0: all actions alike
        shape = (train.dim, vectors.shape[1])
        same = shape[0] == shape[1]
        return vectors, Projection(np.eye(shape[0], dtype=np.float32) if same else np.zeros(shape, dtype=np.float32))


def _needed(embeddings: Embeddings | None, purpose: str) -> Embeddings:
    if embeddings is None:
        raise InvalidInput("--actions", "none", f"embeddings of the actions for {purpose}")
    return embeddings


HEURISTIC = "heuristic"
NO_BOUNDS = {
    HEURISTIC: "exponential smoothing less distance, variance and bias: no bound, needs --logging",
    AUTHORS: "es at the lambda of its authors' code: learns well, no bound and NO CERTIFICATE, needs --logging",
}
USUAL: dict[str, Callable[[int], float]] = {
    "alpha": lambda rows: 1 - rows**-0.25,
    "tau": lambda rows: float(rows**-0.25),
    "gamma": lambda rows: float(rows**-0.5),
    "smoothing": lambda rows: min(MOST_SMOOTHING, 2 * rows**-0.5),
}
"""What a parameter is on n rows where none is given and batches do not adapt it."""


def pessimism_lines() -> dict[str, str]:
    """By what a policy can be learned with a certificate, and what it is in a line."""
    usable = {
        name: kind for name, kind in BOUNDS.items() if not (kind.for_fixed_only or kind.of_gain or kind.over_draws)
    }
    return {name: kind.description for name, kind in usable.items()} | NO_BOUNDS


def _without_logging() -> list[str]:
    """The bounds that need propensities alone."""
    return [name for name in pessimism_lines() if name in BOUNDS and not BOUNDS[name].needs_logging_policy]


@dataclass(frozen=True)
class Pessimism:
    """What to learn by, and how sure the certificate must be.

    parameters: alpha, tau or smoothing, where given; the certificate then looks at no other. family: of the randomised policy.
    independent: rows of a group are independent of each other all the same.
    """

    kind: str
    delta: float = 0.05
    family: str = "gaussian"
    parameters: dict[str, float | int] = field(default_factory=dict)
    independent: bool = False

    def __post_init__(self) -> None:
        known = pessimism_lines()
        if self.kind not in BOUNDS and self.kind not in NO_BOUNDS:
            one_of("--pessimism", self.kind, tuple(known))
        object.__setattr__(self, "kind", self.kind if self.kind in NO_BOUNDS else BOUNDS[self.kind].name)
        one_of("--pessimism", self.kind, tuple(known))
        one_of("--family", self.family, tuple(FAMILIES))
        confidence("--delta", self.delta)
        for name in self.parameters:
            if name != self.parameter:
                takes = "no parameter" if self.parameter is None else f"--{self.parameter}"
                raise InvalidInput(f"--{name}", f"given for {self.kind}", f"none: {self.kind} takes {takes}")
        self.objective(2)  # refuses a parameter out of range

    @property
    def parameter(self) -> str | None:
        """The parameter of the correction, where an option stands for it."""
        if self.kind in NO_BOUNDS:
            return "alpha"
        searched = [field for field, _ in BOUNDS[self.kind].grid]
        return next((name for name in USUAL if f"{name}s" in searched), None)

    @property
    def needs_logging(self) -> bool:
        """Whether pi0 of all actions is needed."""
        return self.kind in NO_BOUNDS or BOUNDS[self.kind].needs_logging_policy

    @property
    def certifies(self) -> bool:
        """Whether the policy comes with a certificate."""
        return self.kind != AUTHORS

    def objective(self, rows: int) -> Objective:
        """What is maximised; a parameter that was not given follows from the number of rows, or from batches."""
        given = self.parameters.get(self.parameter or "")
        if self.kind in NO_BOUNDS:
            estimate = ES(USUAL["alpha"](rows) if given is None else float(given))
            return Heuristic(estimate) if self.kind == HEURISTIC else PACBayes(estimate, self.delta, lam=BY_AUTHORS)
        if self.kind == "es" and given is None:
            return PACBayes(ES("adaptive"), self.delta)
        usual = USUAL.get(self.parameter or "")
        value = float(given) if given is not None else None if usual is None else usual(rows)
        return PACBayes.by_bound(self.kind, rows, self.delta, Grid() if value is None else self._grid(value))

    def _grid(self, value: float) -> Grid:
        """The grid with a single parameter."""
        return replace(Grid(), **{f"{self.parameter}s": (value,)})

    def checked(self, log: LoggedData, inputs: Inputs) -> LoggedData:
        """The log, with a note on what its certificate takes for granted; refused before anything is learned."""
        log.require("propensities", purpose="a certificate")
        log.require("unit_rewards", purpose="a certificate")
        if log.groups is not None and not self.independent:
            expected = (
                "independent rows for a certificate: learn without --pessimism and use manyarms certify --largest-group on other "
                "groups, or --independent where rows of a group are independent"
            )
            raise InvalidInput("LOG", "rows in groups", expected)
        if self.needs_logging and full_propensities(log) is None:
            raise InvalidInput(
                "--logging", "none", f"a folder with the policy that wrote the log, or columns support and support_probabilities "
                f"that list all it could play: --pessimism {self.kind} needs its probabilities of all actions, for bias and "
                f"variance; {', '.join(_without_logging())} do not need it",
            )  # fmt: skip

        if not inputs.fits_encoder_to(log):
            return log
        note = "contexts are encoded by categories, means and scales of these rows; the certificate takes them for fixed before"
        return replace(log, notes=(*log.notes, note))

    def start(self, log: LoggedData, inputs: Inputs) -> tuple[Randomised, PolicyPrior]:
        """What learning starts from, and the same as a prior: around the policy of --prior, else around 0 (or --actions)."""
        learned_from = inputs.prior_rows(log)
        if learned_from is not None:
            require_other_rows("--prior-log", learned_from, log)
        known = inputs.prior_policy
        if known is not None:
            prior = PolicyPrior.of(known.policy, learned_from)
            width = prior.mean.shape[1] if prior.encoder is None else prior.encoder.dim
            if len(prior.mean) != log.action_count or width != log.dim:
                came = f"a policy over {len(prior.mean)} actions and contexts of length {width}"
                raise InvalidInput("--prior", came, f"one over the log's {log.action_count} and {log.dim}")
        elif inputs.embeddings is None:
            prior = PolicyPrior(np.zeros((log.action_count, log.dim)))
        else:
            vectors = inputs.embeddings.vectors
            if vectors.shape[1] != log.dim:
                came = f"embeddings of length {vectors.shape[1]}"
                raise InvalidInput("--actions", came, f"the contexts' length, {log.dim}: they are the prior's mean")
            prior = PolicyPrior(vectors)
        return FAMILIES[self.family](prior.mean, prior.sigma, prior.encoder), prior

    def certified(self, policy: Policy, log: LoggedData, prior: PolicyPrior) -> tuple[Certificate, Improvement]:
        """The certificate on the rows that were learned from, by the bounds that `kind` declares, and of the improvement."""
        fixed = self.parameters.get(self.parameter or "")
        by_default = self.kind in ("es", HEURISTIC)  # what `certify` takes by itself: es and ls
        return certify_with_improvement(
            policy, log, prior=prior, delta=self.delta, independent=self.independent, trust_estimates=True,  # and says so
            bound=None if by_default else tuple(dict.fromkeys((self.kind, "ls"))),
            grid=Grid() if fixed is None else self._grid(float(fixed)),
        )  # fmt: skip


__all__ = ["POTEC", "Choices", "Pessimism", "Start", "pessimism_lines"]

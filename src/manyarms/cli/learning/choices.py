"""From words to objects: the objective, and the policy to start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Ints
from manyarms.cli.learning.inputs import Embeddings
from manyarms.errors import InvalidInput
from manyarms.estimators import Objective, named
from manyarms.estimators.naming import parameters_of
from manyarms.estimators.neighbours import cluster_actions
from manyarms.learning.settings import one_of
from manyarms.logs import LoggedData
from manyarms.policies import Projection, SoftmaxPolicy, SupportedPolicy, SupportSoftmaxPolicy, TwoStagePolicy
from manyarms.rewards.base import RewardModel
from manyarms.rewards.bayesian import BeliefModel, dm_frequentist

POTEC = "potec"
Start = SoftmaxPolicy | SupportSoftmaxPolicy | TwoStagePolicy


@dataclass(frozen=True)
class Choices:
    """What is to be learned.

    objective: a name of `manyarms.estimators.names`, or potec: offcem on a policy in two stages. parameters: tau, alpha, ...
    where given. heavy learns a vector for every action, light a projection of contexts onto given embeddings. support: all
    actions, or those of the logging policy. clusters: how many, by k-means on the embeddings, for mips, offcem and potec.
    neighbours: how many, for pc. model: a folder with a saved agent as reward model of dm, dr and offcem; unless given, a ridge
    regression for every action on the rows that are learned from.
    """

    objective: str = "clpi"
    parameters: dict[str, float | int] = field(default_factory=dict)
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
        parameters_of(self.objective)  # refuses a name that nobody has
        if self.two_stages and self.support != "all":
            raise InvalidInput("--support", self.support, "all, with potec: its second stage picks the actions")

    @property
    def two_stages(self) -> bool:
        """Whether the policy picks a cluster first."""
        return self.objective.lower() == POTEC

    def build(self, train: LoggedData, embeddings: Embeddings | None) -> tuple[Objective, Start]:
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

    def _model(self, train: LoggedData) -> RewardModel:
        if self.model is None:
            return dm_frequentist(train)
        from manyarms.agents.agent import load

        return BeliefModel(load(self.model).belief)

    def _start(self, train: LoggedData, vectors: AnyArray | None) -> SoftmaxPolicy | SupportSoftmaxPolicy:
        actions, encoder = self._scores(train, vectors, train.action_count)
        if self.support == "all":
            return SoftmaxPolicy(actions, encoder=encoder)
        if not isinstance(train.logging, SupportedPolicy):
            came = "no logging policy" if train.logging is None else f"{train.logging!r}, which plays any action"
            expected = "with --support logging, a folder with the policy that wrote the log, one with short lists"
            raise InvalidInput("--logging", came, expected)
        return SupportSoftmaxPolicy(actions, train.logging, encoder=encoder)

    def _two_stages(self, train: LoggedData, vectors: AnyArray, labels: Ints, model: RewardModel) -> TwoStagePolicy:
        weights = getattr(model, "parameters", None)
        if weights is None:
            raise InvalidInput("--model", type(model).__name__, "none with potec: it takes a ridge regression")
        sizes = np.bincount(labels, minlength=int(labels.max()) + 1)
        centres = np.zeros((len(sizes), vectors.shape[1]), dtype=np.float32)
        np.add.at(centres, labels, vectors)
        clusters, encoder = self._scores(train, centres / np.maximum(sizes, 1)[:, None], len(sizes))
        return TwoStagePolicy(clusters, labels, np.asarray(weights, dtype=np.float32), encoder=encoder)

    def _scores(self, train: LoggedData, vectors: AnyArray | None, count: int) -> tuple[AnyArray, Projection | None]:
        """The vectors that scores begin with, and for light ones the projection that is learned."""
        if vectors is None:
            if self.parametrisation == "light":
                raise InvalidInput("--actions", "none", "embeddings: a light policy learns a projection onto them")
            return np.zeros((count, train.dim), dtype=np.float32), None
        vectors = np.asarray(vectors, dtype=np.float32)
        if self.parametrisation == "heavy":
            if vectors.shape[1] != train.dim:
                came = f"embeddings of length {vectors.shape[1]}"
                expected = (
                    f"the contexts' length, {train.dim}, for heavy scores; --parametrisation light takes any length"
                )
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


__all__ = ["Choices", "Start"]

"""Correct arguments for everything public: by the parameter's name and annotation, a few by the callable as well.

A new public callable whose parameters have the usual names needs nothing here. One with a parameter that no rule knows is
reported as not covered: add a rule, or an entry in `NOT_CALLED` with the reason.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hard_use import hostile, public, serving

K, D, N = 12, 3, 40  # actions, dimensions, rows


@dataclass(frozen=True)
class Argument:
    """A correct value, and what kind of hostile values can come in its place."""

    value: Any
    kind: hostile.Kind


class Material(serving.Serving):
    """Small correct objects of every kind, each made once; `folder` is where files go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.public = public.everything()
        self.by_name = {name.rpartition(".")[2]: value for name, value in reversed(self.public.items())}
        rng = np.random.default_rng(0)
        self.X, self.x = rng.normal(size=(N, D)), rng.normal(size=D)
        self.ids, self.rewards = rng.integers(K, size=N), rng.integers(2, size=N).astype(float)
        self.propensities = rng.uniform(0.05, 1, N)
        self.catalogue, self.mixing = rng.normal(size=(K, D)), rng.normal(size=(K, 2))
        self.matrices = rng.normal(size=(K, D, 2))
        self.serial = 0

    def make(self, name: str, *arguments: Any, **named: Any) -> Any:
        """A public class or function by its last name, called."""
        return self.by_name[name](*arguments, **named)

    def new_folder(self) -> str:
        self.serial += 1
        return str(self.folder / f"new-{self.serial}")

    @cached_property
    def log(self) -> Any:
        return self.make("LoggedData", self.X, self.ids, self.rewards, K, self.propensities)

    @cached_property
    def log_of_policy(self) -> Any:
        """A log that knows the policy that wrote it, and so the propensities of all actions."""
        uniform = self.make("UniformPolicy", K)
        return self.make("LoggedData", self.X, self.ids, self.rewards, K, np.full(N, 1 / K), logging=uniform)

    @cached_property
    def evaluated(self) -> Any:
        return self.make("evaluate", self.softmax, self.log)

    @cached_property
    def summary(self) -> Any:
        return self.make("summarise", self.gaussian, self.log_of_policy, [self.make("ClipPropensities", 0.1)])

    @cached_property
    def embeddings(self) -> str:
        np.save(self.folder / "embeddings.npy", self.catalogue)
        return str(self.folder / "embeddings.npy")

    @cached_property
    def action_prior(self) -> Any:
        return self.make("ActionPrior", K, np.zeros(D), np.eye(D))

    @cached_property
    def single_prior(self) -> Any:
        return self.make("ActionPrior", 1, np.zeros(D), np.eye(D))

    @cached_property
    def mixed(self) -> Any:
        return self.make("MixedEffectPrior", self.mixing, np.zeros((2, D)), np.eye(2 * D), np.eye(D))

    @cached_property
    def hierarchical(self) -> Any:
        return self.make("HierarchicalPrior", K, np.zeros(D), np.eye(D), np.eye(D))

    @cached_property
    def chain(self) -> Any:
        return self.make("DiffusionPrior", K, D, [0.5 * np.eye(D)] * 2, [np.eye(D)] * 3)

    def leaves_of(self, parameters: int) -> Any:
        return self.make("Leaves", self.make("IdentityMixing"), np.eye(D), actions=parameters)

    @cached_property
    def likelihood(self) -> Any:
        return self.make("Linear")

    @cached_property
    def softmax(self) -> Any:
        return self.make("SoftmaxPolicy", self.catalogue)

    @cached_property
    def gaussian(self) -> Any:
        return self.make("GaussianPolicy", self.catalogue)

    @cached_property
    def agent(self) -> Any:
        return self.make("meTS", self.mixed, seed=1)

    @cached_property
    def store(self) -> str:
        """The file of a live store with a few events in it."""
        path = str(self.folder / "live.db")
        with self.public["live.open"](
            path, self.make("UniformAgent", K, D, seed=1), default=0.0, wait=0.0, background=False
        ) as live:
            for x in self.X[:3]:
                live.reward(live.decide(x).id, 1.0)
            live.learn()
        return path

    @cached_property
    def sure_agent(self) -> Any:
        """An agent that knows its propensities."""
        return self.make("EpsilonGreedyAgent", self.action_prior, seed=1)

    @cached_property
    def saved(self) -> str:
        self.agent.save(self.folder / "agent")
        return str(self.folder / "agent")

    @cached_property
    def saved_actions(self) -> str:
        self.make("Actions", ["a", "b"]).save(self.folder / "actions")
        return str(self.folder / "actions")

    @cached_property
    def reward_model(self) -> Any:
        return self.make("dm_frequentist", self.log)

    @cached_property
    def belief_model(self) -> Any:
        return self.make("sdm", self.log, self.mixed)

    @cached_property
    def world(self) -> Any:
        return self.make("MixedEffect", actions=50, effects=2, dim=D, seed=0)

    @cached_property
    def frame(self) -> dict[str, Any]:
        return {
            "x_0": self.X[:, 0], "x_1": self.X[:, 1], "action": self.ids, "reward": self.rewards, "propensity": self.propensities,
        }  # fmt: skip

    @cached_property
    def items(self) -> dict[str, Any]:
        kinds = np.array(["tea", "mug"])[np.arange(K) % 2]
        return {"id": np.arange(K), "x_0": self.catalogue[:, 0], "x_kind": kinds, "x_vector": self.catalogue}

    @cached_property
    def new_items(self) -> dict[str, Any]:
        return {**self.items, "id": np.arange(K, 2 * K)}

    def file(self, ending: str) -> str:
        path = self.folder / f"log.{ending}"
        if not path.exists():
            self.make(f"to_{ending}", self.log, path)
        return str(path)


Rule = tuple[str, str, Callable[[Material], Any], hostile.Kind]
h = hostile
# (the callable's last name and the parameter, or the parameter alone; a pattern in its annotation; a value; its kind): first wins
RULES: list[Rule] = [
    *serving.RULES,
    # what a name means in one place only
    ("LatentPrior.mean", "", lambda m: np.zeros(2), h.arrays),
    ("LatentPrior.covariance", "", lambda m: np.eye(2), h.arrays),
    ("FactoredRoot.mean", "", lambda m: np.zeros(2 * D), h.arrays),
    ("FactoredRoot.covariance", "", lambda m: np.eye(2 * D), h.arrays),
    ("isotropic.dim", "", lambda m: D, h.integers),
    ("Factors.users", "", lambda m: m.X, h.arrays),
    ("Factors.items", "", lambda m: m.catalogue, h.arrays),
    ("jointTS.prior", "", lambda m: m.single_prior, h.things),
    ("Catalogue.items", "", lambda m: m.items, h.things),
    ("Catalogue.add.items", "", lambda m: m.new_items, h.things),
    ("Catalogue.column.name", "", lambda m: "x_0", h.words),
    ("Catalogue.clusters.number", "", lambda m: 2, h.integers),
    ("Catalogue.action_contexts.x", "", lambda m: None, h.things),
    ("mixing.separator|mixing_names.separator|prior.separator", "", lambda m: None, h.things),
    ("k_means.vectors", "", lambda m: m.catalogue, h.arrays),
    ("MIPS.labels|OffCEM.labels", "", lambda m: np.arange(K) % 3, h.labels),
    ("TwoStagePolicy.clusters", "", lambda m: m.catalogue[:3], h.arrays),
    ("TwoStagePolicy.model", "", lambda m: m.catalogue, h.arrays),
    ("SegmentSoftmaxPolicy.lists", "", lambda m: np.arange(8).reshape(4, 2), h.ids),
    ("SegmentSoftmaxPolicy.centres", "", lambda m: m.catalogue[:4], h.arrays),
    ("FixedPolicy.probabilities", "", lambda m: np.full(K, 1 / K), h.arrays),
    ("DeterministicPolicy.decide", "", lambda m: lambda X: np.zeros(len(X), dtype=int), h.functions),
    ("FunctionPolicy.probabilities", "", lambda m: lambda X, ids: np.full(len(ids), 1 / K), h.functions),
    ("PolicyPrior.mean", "", lambda m: m.catalogue, h.arrays),
    ("TopSoftmaxPolicy.weights|SegmentSoftmaxPolicy.weights", "", lambda m: m.catalogue, h.arrays),
    ("TopSoftmaxPolicy.k0", "", lambda m: 2, h.integers),
    ("PC.k|Neighbours.k", "", lambda m: 2, h.integers),
    ("Actions.load.folder", "", lambda m: m.saved_actions, h.paths),
    ("load.folder", "", lambda m: m.saved, h.paths),
    (
        "quality.logging|quality.policy|true_value.policy|log_from.policy",
        "",
        lambda m: m.make("UniformPolicy", 50),
        h.things,
    ),
    ("open.store", "", lambda m: ":memory:", h.things),
    ("open.agent", "", lambda m: m.agent, h.things),
    ("open.background", "", lambda m: False, h.things),
    ("Live.decide.x", "", lambda m: m.X[0], h.arrays),
    ("Live.update_actions.actions", "", lambda m: [1], h.ids),
    ("Live.update_actions.weights", "", lambda m: m.mixing[1], h.arrays),
    ("update_actions.actions", "", lambda m: [1], h.ids),
    ("update_actions.weights", "", lambda m: m.mixing[1], h.arrays),
    ("Live.reward.event|Live.event.event|Live.why.event|Live.erase.event", "", lambda m: "decided", h.things),
    ("Live.add_arm.name", "", lambda m: "another", h.things),
    ("Live.remove_arm.name|Live.promote.name", "", lambda m: "second", h.things),
    ("Live.add_arm.arm", "", lambda m: m.sure_agent, h.things),
    ("Live.challenge.challenger", "", lambda m: "second", h.things),
    ("Live.challenge.name", "", lambda m: None, h.texts),
    ("Live.reward.action", "", lambda m: None, h.integers),
    ("Live.compact.keep", "", lambda m: 3600.0, h.numbers),
    ("Live.withdraw.name", "", lambda m: "third", h.things),
    ("Live.deploy.shares", "", lambda m: {"agent": 0.5, "second": 0.5}, h.things),
    ("Live.retire.actions", "", lambda m: [0, 1], h.ids),
    ("Live.reinstate.actions", "", lambda m: [K - 1], h.ids),
    ("Live.cap.most", "", lambda m: 2, h.integers),
    ("Live.add_actions.number", "", lambda m: 2, h.amounts),
    ("Deployment.holdout_arm|Live.deploy.holdout_arm", "", lambda m: None, h.texts),
    ("Live.decide.unit|Live.decide.id", "", lambda m: None, h.texts),
    ("Live.reward.id", "", lambda m: "", h.texts),
    ("Deployment.shares", "", lambda m: {"agent": 1.0}, h.things),
    ("NetworkLink.skip", "", lambda m: 0.5, h.numbers),
    ("NetworkLink.layers", "", lambda m: [(np.eye(D), np.zeros(D)), (np.eye(D), np.zeros(D))], h.things),
    ("group_mass.wanted", "", lambda m: np.array([0, 1, 2, 0]), h.labels),
    ("pretrain.parameters|mixture.parameters", "", lambda m: m.X, h.arrays),
    ("pretrain.depth|synthetic_chain.depth", "", lambda m: 3, h.amounts),
    ("pretrain.hidden", "", lambda m: 4, h.amounts),
    ("Leaves.mixing", "", lambda m: m.make("MixingWeights", m.mixing), h.things),
    ("Belief.root|JointBelief.root", "", lambda m: m.make("GaussianRoot", np.zeros(D), np.eye(D)), h.things),
    ("JointBelief.leaves", "", lambda m: m.leaves_of(1), h.things),
    ("Belief.leaves|ParticleBelief.leaves", "", lambda m: m.leaves_of(K), h.things),
    ("ParticleBelief.centres", "", lambda m: m.X, h.arrays),
    ("of_prior.particles", "", lambda m: 50, h.amounts),
    ("SupervisedWorld.X|SupervisedWorld.X_test", "", lambda m: m.X, h.arrays),
    ("SupervisedWorld.y|SupervisedWorld.y_test", "", lambda m: np.arange(N) % 4, h.labels),
    ("Layers.weights", "", lambda m: [np.eye(D)], h.things),
    ("Layers.biases", "", lambda m: [np.zeros(D)], h.things),
    ("SupportSoftmaxPolicy.support", "", lambda m: m.make("TopSoftmaxPolicy", m.catalogue, 3), h.things),
    ("read_csv.path|CsvLog.path|open_log.path", "", lambda m: m.file("csv"), h.paths),
    ("read_parquet.path|ParquetLog.path", "", lambda m: m.file("parquet"), h.paths),
    ("read_log.path|TableLog.path", "", lambda m: m.file("csv"), h.paths),
    ("RowGroups.source", "", lambda m: m.make("open_log", m.file("parquet")), h.things),
    ("RowGroups.groups", "", lambda m: [0], h.ids),
    ("RowGroups.logging", "", lambda m: None, h.things),
    ("RowGroups.split.share", "", lambda m: 0.5, h.numbers),
    ("read_embeddings.path", "", lambda m: m.embeddings, h.paths),
    ("read_embeddings.argument|named.argument", "", lambda m: "it", h.texts),
    ("named.text", "", lambda m: "cips", h.words),
    ("rate_scenario.name", "", lambda m: "constant", h.words),
    ("Rule.words", "", lambda m: "a half", h.texts),
    ("Rule.default", "", lambda m: lambda n: 0.5, h.functions),
    ("Rule.grid", "", lambda m: lambda n: (0.1, 0.5), h.functions),
    ("make.parameter", "", lambda m: None, h.numbers),
    ("make.rows", "", lambda m: N, h.integers),
    ("simulate.checkpoints", "", lambda m: [5, 20], h.ids),
    ("Drift.half_life|Discount.half_life", "", lambda m: 20.0, h.numbers),
    ("SlidingWindow.length", "", lambda m: 20.0, h.numbers),
    ("advance.at", "", lambda m: 2.0, h.numbers),
    ("choose_drift.half_lives", "", lambda m: [5.0, 50.0], h.labels),
    ("simulate_drifting.world", "", lambda m: m.make("Drifting", actions=50, dim=D, effects=2, seed=0), h.things),
    ("Sudden.rounds", "", lambda m: [5, 9], h.labels),
    ("Seasons.period|Wandering.half_life", "", lambda m: 20.0, h.numbers),
    ("Turnover.every|Turnover.number|Drifting.sudden.round", "", lambda m: 2, h.integers),
    (
        "Gain.for_estimate.correction|LogSmoothingBound.for_estimate.correction",
        "",
        lambda m: m.make("LinearLogSmoothing", 0.1),
        h.things,
    ),
    (
        "ImplicitExplorationBound.for_estimate.correction",
        "",
        lambda m: m.make("ImplicitExploration", 0.1),
        h.things,
    ),
    (
        "AnyAlpha.for_estimate.correction",
        "",
        lambda m: m.make("ExponentialAlpha", 0.5),
        h.things,
    ),
    ("AnyAlpha.for_estimate.lam", "", lambda m: 0.5, h.numbers),
    ("by_bound.name", "", lambda m: "ls", h.words),
    ("tuned.queries", "", lambda m: m.X, h.arrays),
    ("tuned.k", "", lambda m: 2, h.integers),
    ("probabilities_of_many.ids", "", lambda m: np.arange(8).reshape(4, 2), h.ids),
    ("NetworkLink.random.rng", "", lambda m: np.random.default_rng(0), h.seeds),
    ("summarise.log", "", lambda m: m.log_of_policy, h.things),
    ("learn.patience", "", lambda m: None, h.amounts),
    ("sdm_explicit_bound.g", "", lambda m: 0.1, h.numbers),
    ("uniform_logging_rows.gap", "", lambda m: 2.0, h.numbers),
    ("GaussianPolicy.kl.mu0|MixedLogitPolicy.kl.mu0", "", lambda m: m.catalogue, h.arrays),
    ("totals_at.weights", "", lambda m: np.ones(4), h.arrays),
    ("from_data.y", "", lambda m: np.arange(N) % 4, h.labels),
    ("PolicyPrior.of.policy", "", lambda m: m.gaussian, h.things),
    ("Pool.rows", "", lambda m: m.X, h.arrays),
    ("PWLL.g", "", lambda m: lambda pi0, rewards: rewards / pi0, h.functions),
    ("learn.validation", "", lambda m: 0.0, h.numbers),
    ("certify.bound", "", lambda m: "ls", h.words),
    ("evaluate.estimators|quality.estimators", "", lambda m: ["snips"], h.things),
    ("evaluation.InColumn.name", "", lambda m: "p_new", h.texts),
    ("evaluation.Ranked.lists", "", lambda m: np.array([[0, 1], [1, 2], [2, 0]]), h.things),
    ("evaluation.Ranked.weights", "", lambda m: np.array([0.7, 0.3]), h.arrays),
    ("verdict.evaluation", "", lambda m: m.evaluated, h.things),
    ("estimate_propensities.replace", "", lambda m: True, h.flags),
    ("LoggedData.column_names", "", lambda m: None, h.things),
    ("LoggedData.sources", "", lambda m: (), h.things),
    ("rows.index", "", lambda m: slice(0, 5), h.ids),
    ("split.fraction", "", lambda m: 0.5, h.numbers),
    ("add_actions.number|candidates.number", "", lambda m: 2, h.integers),
    ("retire.actions|reinstate.actions", "", lambda m: [3], h.ids),
    ("decide.x|observe.x|replace_reward.x|propensity.x|explain.x|in_context.x", "", lambda m: m.x, h.arrays),
    (
        "observe.action|replace_reward.action|posterior.action|propensity.action|explain.action",
        r"ActionId",
        lambda m: 3,
        h.integers,
    ),
    ("sample.X", r"ContextLike", lambda m: m.X, h.arrays),
    ("Actions.ids", "", lambda m: ["a", "b"], h.things),
    ("Schema.given.catalogue", "", lambda m: ["a", "b"], h.things),
    ("Schema.given.encoder", "", lambda m: None, h.things),
    # statistics that may be looked at at any time
    ("Lift.share", "", lambda m: 0.5, h.numbers),
    ("SampleRatio.shares", "", lambda m: [0.2, 0.3, 0.5], h.arrays),
    ("SampleRatio.update.arm|DriftAlarm.update.action", "", lambda m: [0, 2], h.ids),
    ("DriftAlarm.update.mean", "", lambda m: [0.3, 0.7], h.arrays),
    ("spent_alpha.challenger", "", lambda m: 3, h.integers),
    ("update.weight|first_certified.weight", "", lambda m: [0.5, 2.0], h.arrays),
    (
        "update.value|update.reward|first_certified.reward|update.residual|update.propensity",
        "",
        lambda m: [1.0, 0.5],
        h.arrays,
    ),
    ("update.held_out|update.greedy", "", lambda m: [True, False], h.flags),
    # priors
    ("prior|structure", r"^MixedEffectPrior$|Structure$", lambda m: m.mixed, h.things),
    ("prior", r"HierarchicalPrior", lambda m: m.hierarchical, h.things),
    ("prior", r"^DiffusionPrior$", lambda m: m.chain, h.things),
    ("prior", r"ParameterPrior|ActionPrior", lambda m: m.action_prior, h.things),
    # arrays
    ("mean|mu|mu0", r"Array", lambda m: np.zeros(D), h.arrays),
    ("covariance|action_covariance|matrix", r"Array", lambda m: np.eye(D), h.arrays),
    ("covariances", "", lambda m: np.stack([np.eye(D)] * 2), h.arrays),
    ("links", "", lambda m: [0.5 * np.eye(D)], h.in_a_list),
    ("effect_mean", "", lambda m: np.zeros((2, D)), h.arrays),
    ("effect_covariance", "", lambda m: np.eye(2 * D), h.arrays),
    ("weights", r"Array", lambda m: m.mixing, h.arrays),
    ("matrices", r"Array", lambda m: m.matrices, h.arrays),
    ("contexts|X", r"Array|ContextLike", lambda m: m.X, h.arrays),
    ("x", r"Array|ContextLike", lambda m: m.x, h.arrays),
    ("sigmas|coverage", r"Array|Sequence\[float\]", lambda m: [1.0, 0.5], h.arrays),
    ("W", r"Array", lambda m: np.eye(D), h.arrays),
    ("embeddings|parameters", r"Array", lambda m: m.catalogue, h.arrays),
    ("rewards|ratings", r"Array", lambda m: m.rewards, h.arrays),
    ("users|items", r"Array|Ints", lambda m: m.ids, h.labels),
    ("labels", r"Array", lambda m: np.arange(K) % 3, h.labels),
    ("wanted", r"Array", lambda m: np.array([0, 1, 2]), h.labels),
    # ids and sizes
    ("actions", r"Ints", lambda m: m.ids, h.labels),
    ("actions", r"Array", lambda m: m.catalogue, h.arrays),
    ("actions|action_count|K", r"int", lambda m: K, h.integers),
    ("action|a", r"int|Chosen|ActionId", lambda m: 3, h.integers),
    ("ids", r"Iterable\[(str|ActionId)\]", lambda m: ["a", "b"], h.things),
    ("ids", r"Ints|Array", lambda m: np.arange(4), h.ids),
    ("hidden", r"int", lambda m: 4, h.integers),
    ("dim|d", r"int", lambda m: D, h.integers),
    ("effects|L|clusters", r"int", lambda m: 2, h.integers),
    ("T", r"int", lambda m: 100, h.integers),
    ("n|rows|rounds", r"int", lambda m: 20, h.amounts),
    ("runs", r"int", lambda m: 2, h.amounts),
    ("reward|was|now", r"float", lambda m: 1.0, h.numbers),
    # numbers
    (
        "alpha|beta|gamma|tau|smoothing|strength|scale|limit|epsilon|weight|delta|improvement|gap|lam|mean|eta0",
        r"float",
        lambda m: 0.5,
        h.numbers,
    ),
    (
        "sigma|sigma0|sigma_psi|kappa_x|kappa_b|radius|deviation|spread|g|distance|kl|expected_square",
        r"float",
        lambda m: 1.0,
        h.numbers,
    ),
    # objects
    ("log|source|learned_from|reference", r"Log", lambda m: m.log, h.things),
    ("logs", "", lambda m: [m.log, m.log], h.things),
    ("policy|logging", r"Policy|Learnable", lambda m: m.softmax, h.things),
    ("other", r"Policy", lambda m: None, h.things),
    ("policies", r"Policy", lambda m: [m.softmax, m.gaussian], h.things),
    ("objective", r"Objective", lambda m: m.make("cLPI"), h.things),
    ("value|estimator", r"IPS|Estimator", lambda m: m.make("IPS"), h.things),
    ("model", r"BeliefModel", lambda m: m.belief_model, h.things),
    ("model", r"RewardModel|CatalogueModel", lambda m: m.reward_model, h.things),
    ("likelihood", "", lambda m: m.likelihood, h.things),
    ("decision", "", lambda m: m.make("Thompson"), h.things),
    ("belief", r"Belief", lambda m: m.make("belief_of", m.mixed, m.likelihood), h.things),
    ("agent", r"Agent", lambda m: m.agent, h.things),
    ("agent", r"Actor", lambda m: m.make("meTS", m.world.prior(), seed=1), h.things),
    ("world", r"World|Simulator", lambda m: m.world, h.things),
    ("correction", r"Correction", lambda m: m.make("ClipPropensities", 0.1), h.things),
    ("corrections", r"Correction", lambda m: [m.make("ClipPropensities", 0.1)], h.things),
    ("statistics", r"Statistic", lambda m: [m.make("ClipPropensities", 0.1)], h.things),
    ("summary|best", r"Summary", lambda m: m.summary, h.things),
    ("bound", r"Unified", lambda m: m.make("Unified", m.make("ClipPropensities", 0.1), 0.5), h.things),
    ("bounds", r"Bound", lambda m: [m.make("Unified", m.make("ClipPropensities", 0.1), 0.5)], h.things),
    ("grid", r"Grid", lambda m: m.make("Grid"), h.things),
    ("live.export.store|live.replay.store|live.compact.store", "", lambda m: m.store, h.paths),
    ("live.export.path", "", lambda m: m.new_folder() + ".parquet", h.paths),
    ("live.compact.keep", "", lambda m: 1e6, h.numbers),
    ("frame", "", lambda m: m.frame, h.frames),
    ("catalogue", r"ActionsLike", lambda m: m.make("Actions", [f"item {i}" for i in range(K)]), h.things),
    ("encoder", r"EncoderLike", lambda m: None, h.things),
    ("function", "", lambda m: _tanh, h.functions),
    ("folder", "", lambda m: m.new_folder(), h.paths),
    ("path", "", lambda m: m.new_folder(), h.paths),
]
# optional parameters that are given a small value, so that a call is quick
QUICK: dict[str, Any] = {
    "replicates": 20, "draws": 32, "epochs": 1, "sweeps": 2, "batch": 16, "device": "cpu", "restarts": 1, "bank": 64,
    "neighbours": 5, "folds": 2, "patience": 2, "nodes": 32,
}  # fmt: skip
AMOUNTS = {
    *QUICK,
    "iterations",
    "steps",
    "samples",
    "size",
    "horizon",
    "checkpoint_seconds",
    "n_jobs",
    "workers",
}
# any text is a legal name there
FREE_TEXT = {"Columns"}
# public callables that are not called here, by a pattern of their name, and why
NOT_CALLED = {
    r"TorchEncoder|gradient_gap|log_probability|SampledSoftmax|TopProposal": "takes PyTorch's own objects",
    r"(^|\.)(Batch|Request|Answers|FiniteProblem|Epoch|Moment|Summary|Averages|Ends|Budget)(\.|$)": "made by the library alone",
    r"(^|\.)(Estimate|Evaluation|Verdict|Value|Improvement|Certificate)(\.|$)": "made by the library alone",
    r"(^|\.)(TableLog|TableEncoder|EpsilonMixture|Projection|restore_belief|Snapshot)(\.|$)": (
        "made by the library alone"
    ),
    r"MovieLens|[Ii]mage|[Ii]nteraction|[Oo]pen_?[Bb]andit|dsjson|[Rr]atings|worlds\.datasets|from_features": "reads data sets",
    r"^live\.Live$|^live\.LiveDecision$": "made by `live.open`",
    r"TransformerEncoder": "takes scikit-learn's own objects",
    r"^checks\.": "checks that take what they check",
    **serving.NOT_CALLED,
}


def _tanh(x: Any) -> Any:
    """A function whose arguments can be read, which those of older NumPy's own cannot."""
    return np.tanh(x)


def reason_not_to_call(name: str) -> str | None:
    """Why a public callable is left out, or nothing."""
    return next((reason for pattern, reason in NOT_CALLED.items() if re.search(pattern, name)), None)


# the kind of an optional parameter by a pattern in its annotation: first wins
KINDS: list[tuple[str, hostile.Kind]] = [
    (r"Callable", h.functions), (r"Seed|Generator", h.seeds), (r"Path", h.paths),
    (r"Ints|^Sequence\[int\]|Filter|ManyIds", h.ids),
    (r"Array|ContextLike|Sequence\[float\]", h.arrays), (r"tuple\[float, float\]", h.pairs),
    (r"\bfloat\b", h.numbers), (r"\bint\b", h.integers), (r"\bbool\b", h.flags),
    (r"\bstr\b|Method", h.words),
]  # fmt: skip


def kind_by_annotation(name: str, note: str) -> hostile.Kind:
    """The kind of an optional parameter."""
    for pattern, kind in KINDS:
        if re.search(pattern, note):
            if kind is h.integers and name in AMOUNTS:
                return h.amounts
            if kind is h.words and name in ("name", "label", "note", "notes", "provenance"):
                return h.texts
            if kind is h.ids and name == "exclude":
                return h.excluded
            return h.ids if kind is h.arrays and name in ("candidates", "exclude", "actions", "action") else kind
    return h.things


def argument_of(material: Material, owner: str, parameter: inspect.Parameter) -> Argument | None:
    """A correct argument for one parameter of a callable, or nothing where no rule knows it."""
    name, note = parameter.name, public.annotation_of(parameter)
    optional = parameter.default is not inspect.Parameter.empty
    if optional and owner.rpartition(".")[2] in FREE_TEXT and "str" in note:
        return Argument(parameter.default, h.texts)
    for names, pattern, value, kind in RULES:
        listed = names.split("|")
        mine = any(f".{owner}.{name}".endswith(f".{one}") for one in listed if "." in one)
        if mine or (not optional and name in listed and re.search(pattern, note)):
            return Argument(value(material), kind)
    if name in ("seed", "rng"):
        return Argument(0 if not optional or parameter.default is None else parameter.default, h.seeds)
    if not optional:
        return None
    value = QUICK.get(name, parameter.default)
    kind = kind_by_annotation(name, note)
    return Argument(value, h.words if isinstance(value, str) and kind in (h.arrays, h.ids, h.numbers) else kind)


def arguments_of(material: Material, owner: str, function: Any) -> tuple[dict[str, Argument], list[str]]:
    """Correct arguments for a callable, and the parameters that no rule knows."""
    found, missing = {}, []
    for name, parameter in public.parameters_of(function).items():
        argument = argument_of(material, owner, parameter)
        if argument is None:
            missing.append(f"{name}: {public.annotation_of(parameter)}")
        else:
            found[name] = argument
    return found, missing

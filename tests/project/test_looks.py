"""Everything public that a user gets back prints as a table, as one line, and as HTML; a new class cannot forget to."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms._base.tables import Shown

# What a user makes rather than gets: parts with a repr of their arguments, by their base classes...
PARTS = (
    BaseException,
    ma.agents.Decision,
    ma.beliefs.Likelihood,
    ma.beliefs.Mixing,
    ma.beliefs.Root,
    ma.bounds.Bound,
    ma.bounds.BoundedWeights,
    ma.estimators.Objective,
    ma.logs.LogFormat,
    ma.policies.PolicyRows,
    ma.priors.Link,
    ma.weights.Correction,
    ma.worlds.Change,
    ma.worlds.World,
)
# ...and by name: settings and what one part of the package hands to another, never to a user
INSIDE = {
    "beliefs": {"Belief", "Discount", "Drift", "IndependentChains", "JointBelief", "Leaves", "ParticleBelief", "SlidingWindow"},
    "bounds": {"Averages", "Budget", "Gain", "Grid", "Side", "Summary"},
    "checks": {"OfflineProblem"},
    "engine": {"Engine", "Local"},
    "estimators": {"Answers", "Batch", "FiniteProblem", "Neighbours", "Request"},
    "evaluation": {"InColumn", "OfColumns", "Ranked", "RowTerms"},
    "learning": {"SampledSoftmax", "TopProposal", "TorchEncoder", "TrainingSettings"},
    "logs": {"Columns", "Encoding", "OpenBandit"},
    "policies": {"ExactScan", "FaissIndex", "Layers", "Projection"},
    "rewards": {"Clipped", "DirectFrequentist"},
    "weights": {"Rule"},
    "worlds": {"CatalogueChange", "CatalogueWorld", "Cube", "Images", "InteractionWorld", "Interactions", "Pool",
               "RewardDistribution", "SupervisedWorld"},
}  # fmt: skip


def public_classes() -> Iterator[tuple[str, str, type]]:
    root = Path(ma.__file__).parent
    for folder in sorted(root.iterdir()):
        if not (folder / "__init__.py").is_file() or folder.name.startswith("_") or folder.name == "cli":
            continue
        topic = importlib.import_module(f"manyarms.{folder.name}")
        for name in topic.__all__:
            kind = getattr(topic, name)
            if inspect.isclass(kind) and not getattr(kind, "_is_protocol", False):
                yield folder.name, name, kind


def results() -> list[type]:
    return [
        kind
        for topic, name, kind in public_classes()
        if not issubclass(kind, PARTS) and name not in INSIDE.get(topic, ())
    ]


@pytest.mark.parametrize("kind", results(), ids=lambda kind: kind.__name__)
def test_what_comes_back_has_three_forms(kind: type) -> None:
    assert issubclass(kind, Shown), f"{kind.__qualname__}: derive it from manyarms._base.tables.Shown, or name it above"
    assert kind.__str__ is Shown.__str__ and kind._repr_html_ is Shown._repr_html_
    generated = dataclasses.is_dataclass(kind) and kind.__dataclass_params__.repr
    assert not generated, f"{kind.__qualname__}: @dataclass(repr=False), or its repr is a line for each array"


def test_the_exceptions_are_still_there() -> None:
    there = {(topic, name) for topic, name, _ in public_classes()}
    assert {(topic, name) for topic, names in INSIDE.items() for name in names} <= there


def made(tmp_path: Path) -> Iterator[object]:
    rng = np.random.default_rng(0)
    world = ma.worlds.MixedEffect(30, 3, 4, seed=0)
    agent = ma.meTS(world.prior(), seed=0)
    run = ma.worlds.simulate(world, agent, 40)
    yield from (agent, agent.snapshot(), run, world.prior(), world.action_prior(), world.hierarchical_prior())
    x = world.contexts(1)[0]
    yield from (agent.decide_numbered(x), agent.propensity(x, 3))
    X, actions = rng.normal(size=(400, 4)), rng.integers(0, 30, 400)
    ids = ma.logs.Actions([f"<item & {i}>" for i in range(30)])
    rewards = (rng.random(400) < 0.3).astype(float)
    log = ma.LoggedData(X, actions, rewards, 30, propensities=np.full(400, 1 / 30), catalogue=ids, notes=("a note",))
    policy = ma.SoftmaxPolicy(rng.normal(size=(30, 4)))
    yield from (log, ids, policy, ma.policies.UniformPolicy(30), ma.policies.EpsilonMixture(policy, 0.1))
    found = ma.evaluate(policy, log, name="<new>")
    yield from (found, found.logged, found["snips"], found["snips"].interval, found.verdict())
    yield ma.evaluation.difference(policy, None, log)
    yield ma.evaluation.choose({"<a>": policy, "b": ma.policies.UniformPolicy(30)}, log)
    yield ma.evaluation.tune(policy, log)
    yield from ma.evaluation.quality(
        world, policy, ma.policies.UniformPolicy(30), rows=50, runs=2, estimators=["snips"]
    )
    yield from (ma.inspect(log), *ma.inspect(log).findings)
    estimated = ma.logs.estimate_propensities(log, replace=True)
    yield from (estimated, estimated.calibration, estimated.model)
    certificate = ma.certify(policy, log)
    yield from (certificate, *certificate.candidates, ma.certificates.improvement(policy, log))
    path = tmp_path / "log.csv"
    path.write_text("action,reward,propensity,age,city\na,1,0.5,3,x\nb,0,0.5,4,<y>\n")
    opened = ma.open_log(path)
    yield from (opened, opened.encoder)
    fitted = ma.fit_prior(log, world.action_prior())
    yield from (fitted, fitted.calibration, ma.rewards.choose_drift(log, world.action_prior(), half_lives=[50]))
    lift, gain, value = ma.sequential.Lift(0.5), ma.sequential.PairedGain(), ma.sequential.ValueInterval()
    yield from (lift, gain, value, ma.sequential.SampleRatio([0.5, 0.5]), ma.sequential.PropensityCheck())
    yield from (ma.sequential.EDetector(0.1), ma.sequential.ResidualDetector(), ma.sequential.RunningValue())
    with ma.live.open(tmp_path / "store.db", agent) as live:
        yield from (live, live.report(), live.decide(x), live.deployment, live.settings)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_results_are_short_tables_and_whole_html(tmp_path: Path) -> None:
    for one in made(tmp_path):
        name = type(one).__name__
        line = repr(one)
        assert "\n" not in line and len(line) <= 130 and " object at " not in line, line
        lines = str(one).splitlines()
        assert lines and max(map(len, lines)) <= 100, f"{name}:\n{one}"
        assert len(lines) <= 60, f"{name}:\n{one}"
        tags = _Tags()
        tags.feed(one._repr_html_())
        assert not tags.open and tags.seen <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}, name

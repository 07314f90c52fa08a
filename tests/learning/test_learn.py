"""The training loop: it reaches what it should reach, the same way every time, also after a kill."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.estimators import (
    DM,
    ES,
    IPS,
    LPI,
    MIPS,
    PWLL,
    SWITCH,
    Distance,
    FiniteProblem,
    PACBayes,
    RegKL,
    SwitchDR,
    cIPS,
    cLPI,
)  # fmt: skip
from manyarms.learning import (
    SampledSoftmax,
    TopProposal,
    TorchEncoder,
    TrainingSettings,
    gradient_gap,
    learn,
    steps,
)
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.encoders import Layers, Projection
from manyarms.policies.randomised import GaussianPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy

K, D = 30, 4


def a_log(rows=300, seed=0, **more) -> LoggedData:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, D))
    logging = TopSoftmaxPolicy(np.random.default_rng(9).normal(size=(K, D)), k0=8)
    ids, p = logging.support(X)
    column = (rng.random((rows, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(max=7)
    at = np.arange(rows)
    actions = ids[at, column]
    rewards = (rng.random(rows) < np.where(actions % 3 == 0, 0.8, 0.2)).astype(float)
    return LoggedData(
        X, actions, rewards, K, p[at, column], support=ids, support_probabilities=p, logging=logging, **more
    )  # fmt: skip


START = SoftmaxPolicy(np.random.default_rng(3).normal(size=(K, D)).astype(np.float32))


def one_hot_problem() -> FiniteProblem:
    """Two contexts, one-hot, so that a linear softmax is a table and can be any policy."""
    logging = np.array([[0.5, 0.25, 0.25], [0.125, 0.375, 0.5]])
    rewards = np.array([[0.25, 0.5, 0.75], [0.75, 0.25, 0.5]])
    return FiniteProblem(np.eye(2), np.array([0.5, 0.5]), logging, rewards)


@pytest.mark.parametrize("objective", [LPI(), cLPI(0.3), RegKL(0.7)], ids=lambda o: o.name)
def test_likelihoods_reach_their_oracle(objective) -> None:
    """On a log in which everything happens as often as its probability says, to a thousandth."""
    problem = one_hot_problem()
    log = problem.log(64)
    result = learn(log, SoftmaxPolicy(np.zeros((3, 2))), objective, epochs=600, batch=64, learning_rate=0.05, schedule="linear",
                   precision="fp64", device="cpu")  # fmt: skip
    pi = np.stack([result.policy.probabilities_of(problem.contexts, np.full(2, a)) for a in range(3)], axis=1)
    np.testing.assert_allclose(pi, objective.oracle(problem), atol=1e-3)


@pytest.mark.parametrize("objective", [IPS(), cIPS(0.3), ES(0.5)], ids=lambda o: o.name)
def test_values_move_towards_their_oracle(objective) -> None:
    """Here the landscape is kind: from the uniform policy, the best action wins."""
    problem = one_hot_problem()
    result = learn(problem.log(64), SoftmaxPolicy(np.zeros((3, 2))), objective, epochs=800, batch=64, learning_rate=0.05,
                   precision="fp64", device="cpu")  # fmt: skip
    np.testing.assert_array_equal(result.policy.decide(problem.contexts), objective.oracle(problem).argmax(axis=1))


def test_with_l2_any_start_reaches_the_same_optimum() -> None:
    log = a_log(100)
    found = []
    for seed in (1, 2):
        start = SoftmaxPolicy(np.random.default_rng(seed).normal(size=(K, D)) * 2)
        result = learn(log, start, cLPI(0.05), epochs=400, batch=100, learning_rate=0.05, optimiser="sgd", l2=0.5,
                       precision="fp64", device="cpu")  # fmt: skip
        found.append(result.policy.actions)
    np.testing.assert_allclose(found[0], found[1], atol=2e-4)


def same(a, b) -> None:
    np.testing.assert_array_equal(a.policy.actions, b.policy.actions)
    assert getattr(a.policy, "sigma", None) == getattr(b.policy, "sigma", None)
    if a.policy.encoder is not None:
        for name, array in a.policy.encoder.arrays().items():
            np.testing.assert_array_equal(array, b.policy.encoder.arrays()[name])
    assert [line.objective for line in a.history] == [line.objective for line in b.history]


ENCODER = Layers([np.eye(D)], [np.zeros(D)])
RUNS = {
    "adam": (START, cLPI(0.05), {}),
    "adagrad": (START, IPS(), {"optimiser": "adagrad"}),
    "encoder": (SoftmaxPolicy(START.actions, encoder=ENCODER), cLPI(0.05), {"train": "both"}),
    "support": (SupportSoftmaxPolicy(START.actions, a_log().logging), cIPS(0.1), {}),
    "sampled": (START, LPI(), {"sampler": SampledSoftmax(16)}),
    "proposal": (START, LPI(), {"sampler": TopProposal(8, 8, every=4)}),
    "gaussian": (GaussianPolicy(START.actions, 0.5), PACBayes(cIPS(0.1), bound="london"), {"certified": False}),
    "stopping": (START, RegKL(0.5), {"validation": 0.2, "patience": 2}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_resumes_to_the_same_result(name, tmp_path) -> None:
    policy, objective, more = RUNS[name]
    settings = {
        "epochs": 3,
        "batch": 32,
        "learning_rate": 0.05,
        "seed": 5,
        "device": "cpu",
        "schedule": "cosine",
        **more,
    }
    whole = learn(a_log(), policy, objective, **settings)
    same(whole, learn(a_log(), policy, objective, **settings))  # deterministic at all

    class Killed(Exception):
        pass

    for stop in (4, 13):
        count = iter(range(10_000))

        def kill(moment, count=count, stop=stop):
            if next(count) == stop:
                raise Killed

        folder = tmp_path / name
        with pytest.raises(Killed):
            learn(a_log(), policy, objective, folder=folder, progress=kill, checkpoint_seconds=0, **settings)
    same(whole, learn(a_log(), policy, objective, folder=folder, checkpoint_seconds=0, **settings))
    same(whole, learn(a_log(), policy, objective, folder=folder, **settings))  # finished: nothing is done again


def test_another_run_does_not_take_over_a_folder(tmp_path) -> None:
    learn(a_log(), START, LPI(), folder=tmp_path, epochs=1, device="cpu")
    for log, objective, more in (
        (a_log(seed=1), LPI(), {}),
        (a_log(), cLPI(0.1), {}),
        (a_log(), LPI(), {"learning_rate": 0.2}),
    ):
        with pytest.raises(InvalidInput, match="another log, policy, objective or setting"):
            learn(log, START, objective, folder=tmp_path, epochs=1, device="cpu", **more)


class Guess:
    """A reward model that is the same at every context."""

    action_count, dim, weights = K, D, None

    def __init__(self, values):
        self.values = values

    def predict(self, X, actions):
        return self.values[actions]

    def block(self, X, ids):
        return np.tile(self.values[ids], (len(X), 1))


def encoded(seed):
    return SoftmaxPolicy(START.actions, encoder=Projection(np.random.default_rng(seed).normal(size=(D, D))))


ALIKE = {  # two runs whose names are the same
    "model": ((START, DM(Guess(np.zeros(K)))), (START, DM(Guess(np.arange(K) / K)))),
    "clusters": ((START, MIPS(np.arange(K) % 3)), (START, MIPS(np.arange(K) // 10))),
    "g": ((START, PWLL(lambda r, p: r)), (START, PWLL(lambda r, p: 2 * r))),
    "encoder": ((encoded(0), LPI()), (encoded(1), LPI())),
}


@pytest.mark.parametrize("what", ALIKE)
def test_a_run_that_only_looks_the_same_does_not_take_over_a_folder(what, tmp_path) -> None:
    (policy, objective), (other, another) = ALIKE[what]
    assert objective.label == another.label and repr(policy) == repr(other)
    done = learn(a_log(), policy, objective, folder=tmp_path, epochs=1, device="cpu")
    with pytest.raises(InvalidInput, match="another log, policy, objective or setting"):
        learn(a_log(), other, another, folder=tmp_path, epochs=1, device="cpu")
    same(done, learn(a_log(), policy, objective, folder=tmp_path, epochs=1, device="cpu"))


def test_every_epoch_has_an_order_of_its_own(monkeypatch) -> None:
    seen: dict[int, list[int]] = {}
    take = steps.Steps.take

    def watched(self, window, batches, epoch, *more):
        seen.setdefault(epoch, []).extend(row for index, _ in batches for row in index)
        return take(self, window, batches, epoch, *more)

    monkeypatch.setattr(steps.Steps, "take", watched)
    learn(a_log(100), START, RegKL(), epochs=3, batch=32, device="cpu")
    assert [sorted(order) for order in seen.values()] == [list(range(100))] * 3
    assert len({tuple(order) for order in seen.values()}) == 3


def test_a_proposal_keeps_nothing_from_another_run() -> None:
    """Far fewer steps than `every`: the best actions are still those of the run's own start."""
    used, settings = TopProposal(8, 8), {"epochs": 1, "batch": 100, "learning_rate": 0.1, "device": "cpu"}
    learn(a_log(), SoftmaxPolicy(-5 * START.actions), LPI(), sampler=used, **settings)
    again = learn(a_log(), START, LPI(), sampler=used, **settings)
    same(again, learn(a_log(), START, LPI(), sampler=TopProposal(8, 8), **settings))


def test_early_stopping_keeps_the_best() -> None:
    scores = iter([0.1, 0.5, 0.3, 0.4, 0.2, 0.9])
    kept = []

    def score(policy):
        kept.append(policy.actions.copy())
        return next(scores)

    result = learn(a_log(), START, LPI(), epochs=6, score=score, patience=3, learning_rate=0.1, device="cpu")
    assert [line.score for line in result.history] == [0.1, 0.5, 0.3, 0.4, 0.2]
    np.testing.assert_array_equal(result.policy.actions, kept[1])


def test_the_validation_is_the_self_normalised_estimate() -> None:
    log, held = a_log(), a_log(seed=7)
    result = learn(log, START, LPI(), epochs=1, validation=held, device="cpu")
    w = result.policy.probabilities_of(held.contexts, held.actions) / held.propensities
    assert result.history[0].validation == pytest.approx(float(w @ held.rewards / w.sum()))


def test_light_learns_the_projection_alone() -> None:
    policy = SoftmaxPolicy(START.actions, encoder=Projection(np.eye(D, dtype=np.float32)))
    result = learn(a_log(), policy, cLPI(0.05), epochs=2, device="cpu", learning_rate=0.05)
    np.testing.assert_array_equal(result.policy.actions, START.actions)
    assert np.abs(result.policy.encoder.W - np.eye(D)).max() > 0.01


def test_any_torch_module_encodes_and_a_plain_one_is_saved_as_arrays(tmp_path) -> None:
    torch.manual_seed(0)
    plain = TorchEncoder(torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.ReLU(), torch.nn.Linear(8, D)), D, D)
    result = learn(a_log(), SoftmaxPolicy(START.actions, encoder=plain), LPI(), epochs=1, device="cpu", train="both")
    assert isinstance(result.policy.encoder, Layers)
    result.policy.save(tmp_path / "policy")
    X = a_log().contexts[:5]
    np.testing.assert_allclose(
        ma.load(tmp_path / "policy").probabilities_of(X, np.arange(5)), result.policy.probabilities_of(X, np.arange(5))
    )

    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(D))

        def forward(self, x):
            return torch.sin(x) * self.scale

    odd = learn(a_log(), SoftmaxPolicy(START.actions, encoder=TorchEncoder(Odd(), D, D)), LPI(), epochs=1, device="cpu")
    assert odd.policy.decide(X).shape == (5,)
    with pytest.raises(InvalidInput, match=r"torch\.nn\.Linear"):
        odd.policy.save(tmp_path / "odd")


def test_a_learned_policy_decides_where_torch_is_not_installed(tmp_path) -> None:
    result = learn(a_log(), START, cLPI(0.05), epochs=1, device="cpu")
    result.policy.save(tmp_path / "policy")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np; import manyarms as ma\n"
        f"p = ma.load({str(tmp_path / 'policy')!r}); print(p.decide(np.ones({D}), k=3, exclude=[1]).tolist())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert eval(out.stdout) == result.policy.decide(np.ones(D), k=3, exclude=[1]).tolist()


def test_the_sampled_gradient_is_nearly_unbiased_and_a_better_proposal_has_less_spread() -> None:
    torch.manual_seed(0)
    h, beta = torch.randn(32, 8, dtype=torch.float64), torch.randn(200, 8, dtype=torch.float64)
    ids, weights = torch.randint(0, 200, (32,)), torch.rand(32, dtype=torch.float64)
    few = gradient_gap(h, beta, ids, weights, SampledSoftmax(20), draws=400)
    many = gradient_gap(h, beta, ids, weights, SampledSoftmax(200), draws=400)
    top = gradient_gap(h, beta, ids, weights, TopProposal(20, 20, share=0.3), draws=400)
    assert many.bias < few.bias / 3  # the bias falls as 1 / S
    assert top.spread < few.spread and top.bias < few.bias


def test_sampling_every_action_is_the_exact_softmax_on_average() -> None:
    """With far more draws than actions, learning by sampled softmax ends close to the exact one."""
    exact = learn(a_log(), START, cLPI(0.05), epochs=2, learning_rate=0.02, device="cpu")
    sampled = learn(
        a_log(), START, cLPI(0.05), epochs=2, learning_rate=0.02, device="cpu", sampler=SampledSoftmax(3000)
    )
    moved = np.linalg.norm(exact.policy.actions - START.actions)
    assert np.linalg.norm(exact.policy.actions - sampled.policy.actions) < 0.15 * moved


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_checkpoint(tmp_path) -> None:
    calls = iter(range(1000))

    class Broken(LPI):
        def value(self, terms, batch):
            value = super().value(terms, batch)
            return value * float("nan") if next(calls) == 12 else value

    with pytest.raises(InvalidInput, match=r"kept in .* epoch 2, batch 3"):
        learn(a_log(), START, Broken(), epochs=3, batch=32, folder=tmp_path, checkpoint_seconds=0, device="cpu")
    from manyarms._base import storage

    spec, arrays = storage.read(tmp_path, "learning")
    assert spec["step"] == 12
    assert all(np.isfinite(array).all() for name, array in arrays.items() if name != "best_value")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"schedule": "stairs"}, "schedule"),
        ({"train": "encoder"}, "no encoder"),
        ({"patience": 2}, "validation= or score="),
        ({"l2": 1.0, "towards": "moon"}, "towards"),
    ],
)
def test_bad_settings(change, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        learn(a_log(), START, LPI(), device="cpu", **change)


def test_every_setting_is_an_argument_with_its_default() -> None:
    given = inspect.signature(learn).parameters
    for field in dataclasses.fields(TrainingSettings):
        chosen = field.name in ("epochs", "learning_rate", "schedule")  # where nothing is said
        assert given[field.name].default == (None if chosen else field.default)
        assert given[field.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert given[field.name].annotation == (f"{field.type} | None" if chosen else field.type)
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in given.values())
    with pytest.raises(TypeError, match="'rate'"):
        learn(a_log(), START, LPI(), device="cpu", rate=2)


def test_what_can_only_be_evaluated_is_not_learned() -> None:
    for objective in (SWITCH(Guess(np.zeros(K)), 2.0), Distance(SWITCH(Guess(np.zeros(K)), 2.0), 1.0)):
        with pytest.raises(InvalidInput, match="evaluated and not learned"):
            learn(a_log(), START, objective, device="cpu")
    assert learn(a_log(), START, SwitchDR(Guess(np.arange(K) / K)), epochs=1, device="cpu").objective.startswith(
        "switch-dr"
    )


def test_parameters_that_were_left_open_follow_their_rule() -> None:
    result = learn(a_log(), START, IPS("cips"), epochs=1, device="cpu")
    assert result.objective == "cips (tau=0.0577)"
    given = learn(a_log(), START, cIPS(300**-0.5), epochs=1, device="cpu")
    same(result, given)


def test_bad_logs_and_policies() -> None:
    log = a_log()
    with pytest.raises(InvalidInput, match="30"):
        learn(log, SoftmaxPolicy(np.zeros((K + 1, D))), LPI(), device="cpu")
    with pytest.raises(InvalidInput, match="length"):
        learn(log, SoftmaxPolicy(np.zeros((K, D + 1))), LPI(), device="cpu")
    bare = LoggedData(log.contexts, log.actions, log.rewards, K)
    with pytest.raises(InvalidInput, match="propensities"):
        learn(bare, START, cLPI(0.1), device="cpu")
    with pytest.raises(InvalidInput, match="misses action"):
        other = TopSoftmaxPolicy(-log.logging.actions, k0=2)
        learn(bare, SupportSoftmaxPolicy(START.actions, other), LPI(), device="cpu")
    with pytest.raises(InvalidInput):
        learn(log, START, PWLL(lambda r, p: r - 1.0, "negative"), device="cpu")
    with pytest.raises(InvalidInput, match="beta"):
        RegKL(0.05)


def test_towards_the_logging_policy() -> None:
    """A strong pull ends at the logging policy's parameters."""
    log = a_log()
    result = learn(log, SoftmaxPolicy(np.zeros((K, D))), LPI(), l2=100.0, towards="logging", optimiser="sgd", learning_rate=0.005,
                   epochs=30, batch=100, device="cpu", precision="fp64")  # fmt: skip
    np.testing.assert_allclose(result.policy.actions, log.logging.actions, atol=0.05)
    stays = learn(log, START, Distance(LPI(), 1e5), optimiser="sgd", learning_rate=1e-4, epochs=2, device="cpu")
    np.testing.assert_allclose(stays.policy.actions, START.actions, atol=0.01)

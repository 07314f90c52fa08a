"""One step of every engine is one step down the dense gradient, for every objective."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dense_answers import dense_answers
from manyarms.errors import InvalidInput
from manyarms.estimators import (
    BPR,
    DM,
    DR,
    ES,
    ESLPI,
    IPS,
    IX,
    LPI,
    LS,
    MIPS,
    PC,
    SNDR,
    SNIPS,
    Distance,
    ESBeta,
    Heuristic,
    OffCEM,
    RegKL,
    RegKLLinear,
    SampleVariance,
    cIPS,
    cLPI,
)  # fmt: skip
from manyarms.estimators.base import Batch, Request
from manyarms.learning import optimisers
from manyarms.learning.closed_steps import ClosedSteps
from manyarms.learning.engines import AllActions
from manyarms.learning.loop import TrainingRun
from manyarms.learning.optimisers import ParameterTable
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.steps import Steps
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.encoders import Layers, Projection
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.policies.two_stage import TwoStagePolicy
from manyarms.rewards.linear import LinearModel

ROWS, K, D = 40, 23, 4
rng = np.random.default_rng(0)
BETA, MODEL, LABELS = rng.normal(size=(K, D)), rng.normal(size=(K, D)) * 0.3, np.arange(K) % 5
LOGGING = TopSoftmaxPolicy(rng.normal(size=(K, D)), k0=9)


class LinearRewards:
    """x^T w_a, as a reward model."""

    action_count, dim, weights = K, D, MODEL

    def predict(self, X, actions):
        return np.einsum("nd,nd->n", X, MODEL[actions])

    def block(self, X, ids):
        return X @ MODEL[ids].T


class Bent(LinearRewards):
    """A model that is not linear."""

    weights = None

    def predict(self, X, actions):
        return np.tanh(super().predict(X, actions))

    def block(self, X, ids):
        return np.tanh(super().block(X, ids))


def a_log(seed=1) -> LoggedData:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(ROWS, D))
    ids, p = LOGGING.support(X)
    column = (draw.random((ROWS, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(max=8)
    at = np.arange(ROWS)
    return LoggedData(
        X, ids[at, column], (draw.random(ROWS) < 0.6).astype(float), K, p[at, column],
        support=ids, support_probabilities=p, logging=LOGGING,
    )  # fmt: skip


OBJECTIVES = [
    LPI(), cLPI(0.1), ESLPI(0.7), RegKL(0.5), RegKLLinear(0.5), IPS(), cIPS(0.2), ES(0.6), ESBeta(0.5), IX(0.1),
    SNIPS(), LS(0.2), LS(0.2, linear=False), DM(LinearRewards()), DR(LinearRewards()), DR(Bent()), SNDR(Bent()), MIPS(LABELS),
    OffCEM(LABELS, LinearRewards()), PC(BETA, k=4), SampleVariance(cIPS(0.1), 0.3),
]  # fmt: skip
POLICIES = {
    "all": SoftmaxPolicy(BETA),
    "cool": SoftmaxPolicy(BETA, temperature=0.5),
    "projected": SoftmaxPolicy(BETA, encoder=Projection(rng.normal(size=(D, D)))),
    "deep": SoftmaxPolicy(
        BETA,
        encoder=Layers([rng.normal(size=(D, 6)), rng.normal(size=(6, D))], [rng.normal(size=6), np.zeros(D)], "tanh"),
    ),
    "listed": SupportSoftmaxPolicy(BETA, LOGGING),
}


def dense_gradients(run, policy, objective, log, index):
    """Gradients of minus the objective by beta and by the encoder's parameters, from all K log-probabilities at once."""
    beta = torch.tensor(policy.actions, requires_grad=True)
    x = torch.tensor(log.contexts)
    module = None if run.trainable.encoding is None else run.trainable.encoding.module
    scores = run.trainable.features(x) @ beta.T
    if isinstance(policy, SupportSoftmaxPolicy):
        barred = torch.ones((ROWS, K), dtype=torch.bool).scatter_(1, torch.tensor(log.support), False)
        scores = scores.masked_fill(barred, -torch.inf)
    rows = objective.prepare(log)
    log_pi = torch.log_softmax(scores, dim=1)
    if isinstance(policy, SupportSoftmaxPolicy) and rows.model is not None:
        # -inf times a finite value: the dense sum must not see it
        log_pi = log_pi.clamp(min=-1e4)
    terms, batch = dense_answers(rows, log, log_pi, index=index)
    value = objective.value(terms, batch)
    wanted = [beta] + ([] if module is None else [p for p in module.parameters() if p.requires_grad])
    found = torch.autograd.grad(-value, wanted, allow_unused=True)
    return float(value.detach()), [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, found, strict=True)]


# neighbours lie outside the support: that pair is refused, below
PAIRS = [
    pytest.param(o, k, id=f"{o.label}-{k}") for o in OBJECTIVES for k in POLICIES if (o.name, k) != ("pc", "listed")
]


def test_neighbours_outside_the_support_are_refused() -> None:
    run = TrainingRun(a_log(), POLICIES["listed"], PC(BETA, k=4), TrainingSettings(), torch.device("cpu"))
    with pytest.raises(InvalidInput, match="support"):
        run.step_on(np.arange(ROWS), rate=0.1)


@pytest.mark.parametrize(("objective", "kind"), PAIRS)
def test_a_step_follows_the_dense_gradient(objective, kind) -> None:
    policy, log, index = POLICIES[kind], a_log(), np.arange(5, 37)
    train = "both" if policy.encoder is not None else "actions"
    settings = TrainingSettings(optimiser="sgd", precision="fp64", train=train, learning_rate=1.0)
    run = TrainingRun(log, policy, objective, settings, torch.device("cpu"))
    value, (for_beta, *for_encoder) = dense_gradients(run, policy, objective, log, index)
    before = run.trainable.parameters()
    got = run.step_on(index, rate=1.0)
    after = run.trainable.parameters()
    assert float(got) == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(before["beta"] - after["beta"], for_beta.numpy(), rtol=1e-8, atol=1e-12)
    names = [name for name in before if name.startswith("encoder/")]
    for name, gradient in zip(names, for_encoder, strict=True):
        np.testing.assert_allclose(before[name] - after[name], gradient.numpy(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "objective", [OffCEM(LABELS, LinearRewards()), MIPS(LABELS), cLPI(0.1), IPS()], ids=lambda o: o.name
)
def test_clusters_follow_the_dense_gradient(objective) -> None:
    """pi(a|x) = pi_cl(c|x) 1[a is the best of c], written out over all actions."""
    log, index, start = a_log(), np.arange(30), np.random.default_rng(5).normal(size=(5, D))
    if not isinstance(objective, OffCEM | MIPS):  # log pi of actions that are never played has no finite value
        best = TwoStagePolicy(start, LABELS, MODEL).best_actions(log.contexts)[0]
        plays = best[np.arange(ROWS), LABELS[log.actions]] == log.actions
        log = log.rows(np.flatnonzero(plays))
        index = np.arange(len(log))
    policy = TwoStagePolicy(start, LABELS, MODEL)
    settings = TrainingSettings(optimiser="sgd", precision="fp64", learning_rate=1.0)
    run = TrainingRun(log, policy, objective, settings, torch.device("cpu"))
    clusters = torch.tensor(start, requires_grad=True)
    x = torch.tensor(log.contexts)
    by_cluster = torch.log_softmax(x @ clusters.T, dim=1)
    best = torch.as_tensor(policy.best_actions(log.contexts)[0])
    log_pi = torch.full((len(log), K), -1e4, dtype=torch.float64).scatter(1, best, by_cluster)
    terms, batch = dense_answers(objective.prepare(log), log, log_pi, index=index)
    value = objective.value(terms, batch)
    (gradient,) = torch.autograd.grad(-value, clusters)
    got = run.step_on(index, rate=1.0)
    assert float(got) == pytest.approx(float(value.detach()), rel=1e-9)
    np.testing.assert_allclose(start - run.trainable.parameters()["beta"], gradient.numpy(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("policy", [GaussianPolicy, MixedLogitPolicy])
def test_an_encoder_of_a_randomised_policy_follows_its_gradient(policy) -> None:
    """h counts in the means of the scores, h^T mu, and in their spread, sigma ||h||: differences of the objective say so."""
    log, index, W = a_log(), np.arange(ROWS), np.random.default_rng(2).normal(size=(D, D))
    settings = TrainingSettings(optimiser="sgd", precision="fp64", train="encoder", learn_sigma=False)

    def run(weights):
        start = policy(BETA, 0.7, encoder=Projection(weights))
        return TrainingRun(log, start, IPS(), settings, torch.device("cpu"))

    run_of = run(W)
    run_of.step_on(index, rate=1.0)
    step = run_of.trainable.parameters()["encoder/weight"].T - W
    for i, j in ((0, 0), (1, 3), (3, 2)):
        small = np.zeros((D, D))
        small[i, j] = 1e-5
        up, down = (float(run(W + way * small).step_on(index, rate=1e-30)) for way in (1, -1))
        assert step[i, j] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-7)


def test_bpr_follows_its_dense_gradient_with_the_same_negatives() -> None:
    log, index, policy = a_log(), np.arange(ROWS), SoftmaxPolicy(BETA)
    run = TrainingRun(log, policy, BPR(), TrainingSettings(optimiser="sgd", precision="fp64"), torch.device("cpu"))
    rows = BPR().prepare(log)
    active = index if rows.active is None else index[rows.active]
    drawn = np.random.default_rng([0, 0, 0]).integers(0, K, (len(active), rows.negatives))
    negatives = np.zeros((ROWS, rows.negatives), dtype=np.int64)
    negatives[active] = drawn
    beta = torch.tensor(BETA, requires_grad=True)
    scores = torch.tensor(log.contexts) @ beta.T
    terms, batch = dense_answers(rows, log, torch.log_softmax(scores, 1), scores=scores, negatives=negatives)
    (gradient,) = torch.autograd.grad(-BPR().value(terms, batch), beta)
    run.step_on(index, rate=1.0)
    np.testing.assert_allclose(BETA - run.trainable.parameters()["beta"], gradient.numpy(), rtol=1e-8, atol=1e-12)


def test_rows_without_weight_count_in_the_batch_and_nowhere_else() -> None:
    """The same batch with its zero rows computed densely gives the same step; 1/B stays."""
    log, index = a_log(), np.arange(ROWS)
    run = TrainingRun(
        log, SoftmaxPolicy(BETA), LPI(), TrainingSettings(optimiser="sgd", precision="fp64"), torch.device("cpu")
    )
    assert 0 < run.asked.active.sum() < ROWS
    terms, batch = dense_answers(
        run.asked, log, torch.log_softmax(torch.tensor(log.contexts @ BETA.T), 1), active_only=False
    )
    assert batch.size == ROWS
    assert float(run.step_on(index, rate=1.0)) == pytest.approx(float(LPI().value(terms, batch)), rel=1e-12)


def test_distance_pulls_to_the_start() -> None:
    log = a_log()
    run = TrainingRun(
        log,
        SoftmaxPolicy(BETA),
        Distance(cLPI(0.1), 3.0),
        TrainingSettings(optimiser="sgd", precision="fp64"),
        torch.device("cpu"),
    )
    assert run.trainable.table.pull == pytest.approx(2 * 3.0 / ROWS)
    np.testing.assert_array_equal(run.trainable.table.anchor.numpy(), BETA)


@pytest.mark.parametrize("towards", ["zero", "start", "logging"])
@pytest.mark.parametrize("l2", [0.0, 0.4])
def test_two_pulls_are_the_gradients_of_both(towards, l2) -> None:
    """l2/2 ||theta - a||^2 and l1 ||theta - start||^2 of the heuristic objective, away from the start."""
    log, moved, temperature = a_log(), BETA + 0.3, 0.5
    settings = TrainingSettings(optimiser="sgd", precision="fp64", l2=l2, towards=towards)
    policy = SoftmaxPolicy(BETA, temperature=temperature)
    table = TrainingRun(log, policy, Heuristic(cIPS(0.1), distance=0.7), settings, torch.device("cpu")).trainable.table
    table.beta.copy_(torch.tensor(moved))
    table.begin(1.0)
    table.block(0, K, torch.zeros(K, D, dtype=torch.float64))
    logged = LOGGING.actions / LOGGING.temperature * temperature
    other = {"zero": np.zeros_like(BETA), "start": BETA, "logging": logged}[towards]
    expected = l2 * (moved - other) + 2 * 0.7 * (moved - BETA)
    np.testing.assert_allclose(moved - table.beta.numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["adam", "adam in six passes", "sgd", "adagrad"])
def test_dense_steps_are_torchs_own(kind, monkeypatch) -> None:
    if kind == "adam in six passes":  # what a PyTorch without the fused step takes
        monkeypatch.setattr(optimisers, "FUSED", None)
        kind = "adam"
    beta = torch.randn(11, 3, dtype=torch.float64)
    reference = beta.clone().requires_grad_()
    table, squares = ParameterTable(beta.clone(), kind, pull=0.1), torch.zeros(11, 1, dtype=torch.float64)
    kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    for step in range(5):
        gradient = torch.randn(11, 3, dtype=torch.float64)
        table.begin(0.05)
        for first, last in ((0, 4), (4, 11)):
            table.block(first, last, gradient[first:last].clone())
        table.finish()
        if kind in kinds:
            if step == 0:
                optimiser = kinds[kind]([reference], lr=0.05)
            reference.grad = gradient + 0.1 * reference.detach()
            optimiser.step()
        else:
            whole = gradient + 0.1 * reference.detach()
            squares = squares + whole.square().mean(1, keepdim=True)
            reference.data -= 0.05 * whole / (squares.sqrt() + 1e-10)
    assert torch.allclose(table.beta, reference.detach(), rtol=1e-10, atol=1e-12)
    assert table.reach == pytest.approx(float(table.beta.norm(dim=1).max()))


@pytest.mark.parametrize("kind", ["adam", "sgd", "adagrad"])
@pytest.mark.parametrize("gradients", ["one way", "turning", "rare", "growing"])
def test_whether_rows_are_short_is_answered_as_if_they_had_just_been_counted(kind, gradients) -> None:
    """Also at limits that lie between the largest norms of two steps; and no number moves by more than is said."""
    torch.manual_seed(7)
    table, other = ParameterTable(torch.randn(9, 4), kind), ParameterTable(torch.empty(9, 4), kind)
    for step in range(60):
        size = {"one way": 1.0, "turning": (-1.0) ** step, "rare": float(step % 20 == 0), "growing": 1.2**step}[
            gradients
        ]
        before = table.beta.clone()
        table.begin(0.1)
        for first, last in ((0, 5), (5, 9)):
            table.block(first, last, torch.rand(last - first, 4) * size)
        table.finish()
        if kind != "sgd":
            assert float((table.beta - before).norm(dim=1).max()) <= 0.1 * table.largest_move() * 2
        exact = float(torch.linalg.vector_norm(table.beta, dim=1).max())
        other.restore(table.state(), table.steps)  # knows nothing of earlier steps
        for limit in (exact / 2, exact * 0.999, exact, exact * 1.001, exact * 2):
            assert table.within(limit) is other.within(limit) is (exact <= limit)
    assert table.reach == pytest.approx(exact)


def test_short_rows_are_rarely_counted(monkeypatch) -> None:
    """A step of Adam moves a row by 7.4 rates a number at most: from norms of 1 it is long to a limit of 10."""
    counted = []
    whole = ParameterTable._largest
    monkeypatch.setattr(ParameterTable, "_largest", staticmethod(lambda beta: counted.append(1) or whole(beta)))
    table = ParameterTable(torch.full((5, 4), 0.5), "adam")
    for _ in range(200):
        assert table.within(10.0)
        table.begin(1e-3)
        table.block(0, 5, torch.randn(5, 4))
        table.finish()
    assert len(counted) == 1


def test_a_batch_with_long_rows_takes_the_step_of_short_ones() -> None:
    """Scores beyond what is exponentiated as it is: the careful passes have the gradient of the plain ones."""
    log, index = a_log(), np.arange(ROWS)
    settings = TrainingSettings(optimiser="sgd", precision="fp64", learning_rate=1.0)
    for scale in (1.0, 40.0):
        policy = SoftmaxPolicy(BETA * scale)
        run = TrainingRun(log, policy, cLPI(0.1), settings, torch.device("cpu"))
        _, (gradient,) = dense_gradients(run, policy, cLPI(0.1), log, index)
        run.step_on(index, rate=1.0)
        assert run.trainable.engine._safe is (scale == 1.0)
        moved = BETA * scale - run.trainable.parameters()["beta"]
        np.testing.assert_allclose(moved, gradient.numpy(), rtol=1e-8, atol=1e-11)


def test_lazy_adam_is_torchs_sparse_adam() -> None:
    beta = torch.randn(12, 3, dtype=torch.float64)
    reference = beta.clone().requires_grad_()
    optimiser = torch.optim.SparseAdam([reference], lr=0.05)
    table = ParameterTable(beta.clone(), "adam")
    for step in range(6):
        ids = torch.unique(torch.randint(0, 12, (5,), generator=torch.Generator().manual_seed(step)))
        gradient = torch.randn(len(ids), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(step))
        table.begin(0.05)
        table.rows(ids, gradient)
        reference.grad = torch.sparse_coo_tensor(ids[None], gradient, (12, 3), check_invariants=True)
        optimiser.step()
    assert torch.allclose(table.beta, reference.detach(), atol=1e-5)  # its 1e-8 is over another scale


def test_a_model_of_clusters_must_be_the_policys_own() -> None:
    log, policy = a_log(), TwoStagePolicy(np.zeros((5, D)), LABELS, MODEL + 1)
    run = TrainingRun(log, policy, OffCEM(LABELS, LinearRewards()), TrainingSettings(), torch.device("cpu"))
    with pytest.raises(InvalidInput, match="reward model"):
        run.step_on(np.arange(5), rate=0.1)


def test_linear_models_of_the_package_are_recognised() -> None:
    from manyarms.rewards.bayesian import dm_frequentist

    model = dm_frequentist(a_log())
    assert isinstance(model, LinearModel)
    run = TrainingRun(a_log(), SoftmaxPolicy(BETA), DM(model), TrainingSettings(precision="fp64"), torch.device("cpu"))
    assert run.window.request.model.weights is not None


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("optimiser", ["adam", "adagrad"])
def test_a_batch_without_any_weight_moves_nothing_at_first(kind, optimiser) -> None:
    """All rewards of the batch are 0: no row is left, and the first step has no momentum either."""
    policy, log = POLICIES[kind], a_log()
    silent = np.flatnonzero(log.rewards == 0)[:5]
    settings = TrainingSettings(optimiser=optimiser, precision="fp64", train="actions")
    run = TrainingRun(log, policy, cLPI(0.1), settings, torch.device("cpu"))
    before = run.trainable.parameters()["beta"]
    assert float(run.step_on(silent, rate=0.1)) == 0.0
    np.testing.assert_array_equal(run.trainable.parameters()["beta"], before)


def test_a_batch_of_clusters_without_any_weight() -> None:
    log = a_log()
    silent = np.flatnonzero(log.rewards == 0)[:5]
    run = TrainingRun(
        log, TwoStagePolicy(np.ones((5, D)), LABELS, MODEL), MIPS(LABELS), TrainingSettings(), torch.device("cpu")
    )
    assert float(run.step_on(silent, rate=0.1)) == 0.0


@pytest.mark.parametrize("kind", ["all", "cool", "deep"])
@pytest.mark.parametrize("objective", [LPI(), cLPI(0.1), RegKL(0.5), IPS(), cIPS(0.2), SNIPS()], ids=lambda o: o.label)
def test_steps_with_known_derivatives_are_the_usual_ones(objective, kind, monkeypatch) -> None:
    """Value, table, moments and encoder after three batches, one of them without any active row; nothing is differentiated."""
    log, policy = a_log(), POLICIES[kind]
    train = "both" if policy.encoder is not None else "actions"
    settings = TrainingSettings(precision="fp64", train=train, learning_rate=0.1)
    closed, usual = (TrainingRun(log, policy, objective, settings, torch.device("cpu")) for _ in range(2))
    assert isinstance(closed.steps, ClosedSteps)
    usual.steps = Steps(usual.trainable, usual.objective, settings)
    batches = [np.arange(0, 20), np.flatnonzero(log.rewards == 0)[:5], np.arange(15, 40)]
    wanted = [float(usual.step_on(index, step=step, rate=0.1)) for step, index in enumerate(batches)]
    if objective.linear_terms(log) is not None:
        monkeypatch.setattr(Steps, "climb", None)
    got = [float(closed.step_on(index, step=step, rate=0.1)) for step, index in enumerate(batches)]
    assert got == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    ours, theirs = closed.trainable.parameters(), usual.trainable.parameters()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=1e-9, atol=1e-12)
    for name, moment in closed.trainable.table.moments.items():
        np.testing.assert_allclose(moment, usual.trainable.table.moments[name], rtol=1e-9, atol=1e-15)


def test_what_is_safe_for_one_window_is_not_taken_for_other_rows() -> None:
    """A limit that came with short rows does not make long rows of a later batch safe."""
    table = ParameterTable(torch.ones(5, 2, dtype=torch.float64), "sgd", learned=False)
    engine = AllActions(table, learns_table=False)
    short, ids = torch.full((3, 2), 0.1, dtype=torch.float64), torch.zeros(3, dtype=torch.int64)
    assert table.within(100.0)  # norms are counted: from here on they are known
    engine.climb(short, ids, torch.ones(3), True, limit=100.0)
    assert engine._safe
    answers = engine.forward(Batch({}, 3, x=short, h=short * 1e4, ids=ids[:, None]), Request())
    assert not engine._safe
    assert answers.log_probability.detach().numpy() == pytest.approx(-np.log(5.0))

"""Steps on a GPU: the kernels against float64, and whole runs against the same runs on a processor."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manyarms as ma
from manyarms.estimators import BPR, IPS, LPI, LS, SNIPS, ESBeta, RegKL, cIPS, cLPI
from manyarms.estimators.base import Objective
from manyarms.learning.device_table import DeviceTable
from manyarms.learning.optimisers import ParameterTable
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.encoders import Projection

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with Triton")
ACTIONS, DIM = 2_500, 20


def a_log(rows: int = 1_500, negative: bool = False) -> LoggedData:
    rng = np.random.default_rng(0)
    rewards = rng.uniform(0, 1, rows) * (rng.uniform(size=rows) < 0.5) - (0.3 if negative else 0.0)
    contexts = rng.standard_normal((rows, DIM)) * 0.5
    return LoggedData(contexts, rng.integers(0, ACTIONS, rows), rewards, ACTIONS, rng.uniform(0.05, 0.9, rows))


def a_start(actions: int = ACTIONS, dim: int = DIM) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((actions, dim)).astype(np.float32) * np.float32(0.3)


# ---- what needs no GPU


@pytest.mark.parametrize("kind", ["adam", "sgd", "adagrad"])
@pytest.mark.parametrize("anchored", [False, True])
def test_a_table_whose_rate_is_a_tensor_takes_the_same_steps(kind, anchored) -> None:
    start = torch.tensor(a_start(30, 4), dtype=torch.float64)
    anchor = torch.ones_like(start) if anchored else None
    tables = [make(start.clone(), kind, pull=0.1, anchor=anchor) for make in (ParameterTable, DeviceTable)]
    rng = np.random.default_rng(2)
    for step in range(5):
        gradient = torch.tensor(rng.standard_normal((30, 4)))
        for table in tables:
            table.begin(0.1 / (step + 1))
            table.block(0, 10, gradient[:10].clone())
            table.block(10, 30, gradient[10:].clone())
            table.finish()
    assert torch.allclose(tables[0].beta, tables[1].beta, rtol=1e-9, atol=1e-12)


# ---- kernels


@gpu
@pytest.mark.parametrize(
    ("precision", "log_error", "error"), [("fp32", 1e-4, 1e-4), ("tf32", 5e-3, 5e-3), ("bf16", 5e-3, 5e-3)]
)
@pytest.mark.parametrize(
    ("rows", "actions", "width"), [(1, 17, 16), (100, 1_001, 64), (257, 5_003, 128), (64, 999, 20)]
)
def test_the_kernels_agree_with_float64(precision, log_error, error, rows, actions, width) -> None:
    """Within the precision they state; for bf16 the tables are rounded first, and the sums must be right.

    A sum is held to its terms' sizes: they are rounded one by one, and may cancel.
    """
    from manyarms.learning import launching
    from manyarms.learning.cuda import PRODUCTS

    name, dtype = PRODUCTS[precision]
    rng = np.random.default_rng(rows)
    h = torch.tensor(rng.standard_normal((rows, width)) / width**0.5, dtype=torch.float32, device="cuda")
    beta = torch.tensor(rng.standard_normal((actions, width)), dtype=torch.float32, device="cuda")
    ids = torch.tensor(rng.integers(0, actions, rows), device="cuda")
    low, plan = beta.to(dtype), launching.Plan.of_one(rows, beta.device)
    factor = torch.randn(rows, device="cuda") / rows
    tiles = launching.tiles_for("step", width, dtype, signed=True)
    low_h = launching.lowered(h, dtype, tiles.scaled).double() / (launching.TO_LOG2 if tiles.scaled else 1.0)
    scores = low_h @ low.double().T
    wanted = torch.logsumexp(scores, 1)
    reach = torch.ones(2, device="cuda")
    for limit in (1.0, 1e9):  # with and without the running maximum
        log_z = launching.log_normaliser(h, low, torch.full((1,), limit, device="cuda"), reach, plan, precision=name)
        assert float((log_z - wanted).abs().max()) <= log_error
    pi = torch.exp(scores - wanted[:, None]) * factor.double()[:, None]
    dense = (pi.T @ h.double()).index_add_(0, ids, -factor.double()[:, None] * h.double())
    gradient = torch.empty_like(beta)
    singles = launching.Singles.sorted(torch.arange(rows, device="cuda"), ids, -factor)
    launching.step(h, low, log_z, factor, singles, plan, kind=0, gradient=gradient, precision=name)
    sizes = (pi.abs().T @ h.double().abs()).index_add_(0, ids, (factor[:, None] * h).double().abs())
    assert bool(((gradient - dense).abs() <= (error + log_error) * sizes).all())
    for_h = launching.pull_features(h, low, log_z, factor, precision=name)
    dense_h = pi @ beta.double()
    assert bool(((for_h - dense_h).abs() <= (error + log_error) * (pi.abs() @ beta.double().abs())).all())


# ---- whole runs


OBJECTIVES: list[Objective] = [cLPI(0.1), LPI(), IPS(), cIPS(0.2), RegKL(), SNIPS(), LS(0.1), ESBeta(0.5), BPR(2)]


@gpu
@pytest.mark.parametrize("optimiser", ["adam", "sgd", "adagrad"])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.name)
def test_a_run_agrees_with_one_on_a_processor(objective, optimiser) -> None:
    log, rate = a_log(), 0.5 if optimiser == "sgd" else 0.01
    made = [
        ma.learn(
            log, SoftmaxPolicy(a_start()), objective, epochs=3, batch=100, learning_rate=rate, schedule="linear",
            optimiser=optimiser, l2=0.0 if optimiser == "adam" else 0.01, towards="start", device=device,
        )
        for device in ("cpu", "cuda")
    ]  # fmt: skip
    one, other = (np.asarray(result.policy.actions) for result in made)
    moved = float(np.abs(one - a_start()).max())
    assert np.abs(one - other).max() <= 2e-3 * moved + 1e-6
    assert made[0].history[-1].objective == pytest.approx(made[1].history[-1].objective, rel=1e-4, abs=1e-7)


@gpu
@pytest.mark.parametrize(("actions", "batch"), [(3, 64), (200, 700), (ACTIONS, 100)])
@pytest.mark.parametrize("objective", [IPS(), cLPI(0.1)], ids=lambda one: one.name)
def test_few_actions_and_negative_rewards(objective, actions, batch) -> None:
    rng = np.random.default_rng(4)
    rewards = rng.uniform(0, 1, 1_500) - (0.3 if objective.name == "ips" else 0.0)
    log = LoggedData(
        rng.standard_normal((1_500, DIM)),
        rng.integers(0, actions, 1_500),
        rewards,
        actions,
        rng.uniform(0.1, 0.9, 1_500),
    )
    start = a_start(actions)
    one, other = (
        np.asarray(
            ma.learn(log, SoftmaxPolicy(start), objective, epochs=2, batch=batch, learning_rate=0.1, optimiser="sgd",
                     device=device).policy.actions
        )
        for device in ("cpu", "cuda")
    )  # fmt: skip
    assert np.abs(one - other).max() <= 2e-3 * float(np.abs(one - start).max()) + 1e-6


@gpu
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("width", [1, 40, 128, 200])
def test_runs_of_one_seed_have_the_same_bits_and_learn(precision, width) -> None:
    rng = np.random.default_rng(5)
    log = LoggedData(
        rng.standard_normal((900, width)) / width**0.5, rng.integers(0, 500, 900), np.ones(900), 500, np.full(900, 0.1)
    )
    runs = [
        ma.learn(log, SoftmaxPolicy(np.zeros((500, width))), cLPI(0.01), epochs=3, batch=64, learning_rate=0.1,
                 precision=precision, device="cuda")
        for _ in range(2)
    ]  # fmt: skip
    assert np.array_equal(runs[0].policy.actions, runs[1].policy.actions)
    assert runs[0].history[-1].objective > runs[0].history[0].objective


@gpu
def test_a_run_that_was_stopped_ends_with_the_bits_of_one_that_was_not(tmp_path) -> None:
    log, seen = a_log(), 0

    def stop(moment: object) -> None:
        nonlocal seen
        seen += 1
        if seen == 3:
            raise KeyboardInterrupt

    def run(**more: object) -> np.ndarray:
        result = ma.learn(log, SoftmaxPolicy(a_start()), cLPI(0.1), epochs=4, batch=64, learning_rate=0.01, device="cuda",
                          checkpoint_seconds=0, **more)  # type: ignore[arg-type]  # fmt: skip
        return np.asarray(result.policy.actions)

    with pytest.raises(KeyboardInterrupt):
        run(folder=tmp_path / "run", progress=stop)
    assert np.array_equal(run(folder=tmp_path / "run"), run())


@gpu
def test_an_encoder_is_learned_in_captured_steps() -> None:
    log = a_log()
    encoder = Projection(np.random.default_rng(6).standard_normal((DIM, 8)) * 0.3)
    made = [
        ma.learn(log, SoftmaxPolicy(a_start(ACTIONS, 8), encoder=encoder), cLPI(0.1), epochs=3, batch=100,
                 learning_rate=0.01, train="both", device=device)
        for device in ("cpu", "cuda")
    ]  # fmt: skip
    one, other = (np.asarray(result.policy.actions) for result in made)
    assert np.abs(one - other).max() <= 2e-3 * float(np.abs(one - a_start(ACTIONS, 8)).max())

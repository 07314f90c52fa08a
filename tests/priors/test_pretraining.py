"""Pre-training: the chain's formulas against exact ones, the links against the network, and what training must bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import manyarms as ma
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput, MissingExtra, StorageError
from manyarms.priors import denoiser
from manyarms.priors.pretraining import Pretrained, _covariance, chain_links, noise_schedule, pretrain
from manyarms.worlds.swiss_roll import swiss_roll

DEPTHS = (1, 2, 3, 5, 10, 40, 100)


def sliced_wasserstein(first: Array, second: Array) -> float:
    angles = np.pi * np.arange(64) / 64
    directions = np.stack([np.cos(angles), np.sin(angles)])
    gaps = np.sort(first @ directions, axis=0) - np.sort(second @ directions, axis=0)
    return float(np.sqrt((gaps**2).mean()))


@pytest.fixture(scope="module")
def roll() -> Array:
    return swiss_roll(2000, np.random.default_rng(1))


@pytest.fixture(scope="module")
def trained(roll: Array) -> Pretrained:
    return pretrain(roll, 20, epochs=600, batch=512, seed=3)


# ---- the schedule


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_every_depth_ends_in_noise_and_steps_grow(kind: str, depth: int) -> None:
    betas = noise_schedule(kind, depth)
    assert betas.shape == (depth,) and (betas > 0).all() and (betas < 1).all()
    assert np.prod(1 - betas) <= 1.001e-3
    assert (np.diff(betas) >= 0).all()


def test_the_same_noise_at_the_same_part_of_the_way() -> None:
    """Doubling the depth splits every step in two: abar at half the way does not depend on the depth."""
    for kind in ("cosine", "linear"):
        halfway = [np.prod(1 - noise_schedule(kind, depth)[: depth // 2]) for depth in (2, 10, 100)]
        np.testing.assert_allclose(halfway, halfway[0], rtol=1e-10)


def test_a_schedule_of_ones_own_is_checked() -> None:
    own = np.linspace(0.1, 0.9, 10)
    np.testing.assert_array_equal(noise_schedule(own, 10), own)
    with pytest.raises(InvalidInput, match="depth: expected as many layers as the schedule has steps"):
        noise_schedule(own, 40)
    with pytest.raises(InvalidInput, match="larger betas"):
        noise_schedule([0.01] * 5, 5)
    with pytest.raises(InvalidInput, match="above 0 and below 1"):
        noise_schedule([0.5, 1.0], 2)
    with pytest.raises(InvalidInput, match="'cosine', 'linear'"):
        noise_schedule("square", 5)


# ---- from noise predictor to chain, without training


def gaussian_chain(depth: int, kind: str, S: Array, variances: str) -> ma.DiffusionPrior:
    """The chain of the links' formula with the exact noise predictor of N(0, S), in plain units.

    z_l ~ N(0, C_l), C_l = abar_l S + (1 - abar_l) I, so E[eps | z_l] = sqrt(1 - abar_l) C_l^-1 z_l.
    """
    betas = noise_schedule(kind, depth)
    abar = np.cumprod(1 - betas)
    links = []
    for beta, rest in zip(betas, abar, strict=True):
        eps = np.sqrt(1 - rest) * np.linalg.inv(rest * S + (1 - rest) * np.eye(len(S)))
        links.append((np.eye(len(S)) - beta / np.sqrt(1 - rest) * eps) / np.sqrt(1 - beta))
    steps = betas
    if variances == "posterior":
        steps = betas * (1 - np.r_[1, abar[:-1]]) / (1 - abar)
        steps[0] = steps[1]
    return ma.DiffusionPrior(1, len(S), links, [*steps, 1.0], shared=False)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_standard_normal_data_are_drawn_exactly_at_any_depth(kind: str, depth: int) -> None:
    covariance = gaussian_chain(depth, kind, np.eye(3), "beta").marginal().covariance
    np.testing.assert_allclose(covariance, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("variances", ["beta", "posterior"])
@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_any_gaussian_is_drawn_exactly_in_the_limit_of_many_steps(kind: str, variances: str) -> None:
    S = np.array([[1.3, 0.5], [0.5, 0.6]])
    errors = [
        np.abs(gaussian_chain(depth, kind, S, variances).marginal().covariance - S).max() for depth in (50, 200, 800)
    ]
    assert errors[0] > 2.5 * errors[1] > 6 * errors[2] and errors[2] < 0.02


@pytest.mark.parametrize("depth", [1, 2, 7, 40])
def test_without_a_network_the_chain_is_the_gaussian_of_the_data(depth: int, rng: np.random.Generator) -> None:
    """N = 0: theta ~ N(m, V) exactly, in the units of the data, and the top of the chain has mean 0."""
    mean, V = np.array([5.0, -300.0]), np.array([[4.0, 1.0], [1.0, 900.0]])
    unit, betas = np.linalg.cholesky(V), noise_schedule("cosine", depth)
    layers = ((rng.standard_normal((8, 2)), np.zeros(8)), (np.zeros((2, 8)), np.zeros(2)))
    links = chain_links(mean, unit, betas, layers, np.zeros((depth, 8)))
    centre, spread = np.zeros(2), V.copy()  # of psi_L
    for level in range(depth, 0, -1):
        centre = links[level - 1](centre[None])[0]
        jacobian = links[level - 1].jacobian(centre[None])[0]
        spread = jacobian @ spread @ jacobian.T + betas[level - 1] * V
    np.testing.assert_allclose(centre, mean, rtol=1e-12)
    np.testing.assert_allclose(spread, V, rtol=1e-10)


# ---- the links are the network


@pytest.mark.parametrize("widths", [(7,), (6, 5), (4, 5, 6)])
def test_links_are_the_networks_step_back(widths: tuple[int, ...], rng: np.random.Generator) -> None:
    """In the data's units: psi = A z + c m, and A^-1 (f(psi) - c' m) is Ho et al.'s mean with the torch network's noise."""
    depth, d = 9, 3
    betas = noise_schedule("linear", depth)
    abar = np.cumprod(1 - betas)
    network = denoiser.fresh(abar, d, widths, 5, torch.empty(0, dtype=torch.float64))
    with torch.no_grad():
        for part in network.parameters:  # also the last layer, which starts at zero
            part.copy_(torch.as_tensor(rng.standard_normal(part.shape)))
    layers = tuple((A.detach().numpy(), c.detach().numpy()) for A, c in network.layers)
    steps = denoiser.step_features(depth) @ network.mixing.detach().numpy()
    mean = rng.standard_normal(d) * 10
    unit = np.linalg.cholesky(np.cov(rng.standard_normal((d, 9))) * 50)
    links = chain_links(mean, unit, betas, layers, steps)
    z = rng.standard_normal((50, d)) * 2
    shift = np.sqrt(np.r_[1, abar])
    shift[-1] = 0
    for l in range(1, depth + 1):
        with torch.no_grad():
            eps = network(torch.as_tensor(z), torch.full((50,), l - 1)).numpy()
        by_hand = (z - betas[l - 1] / np.sqrt(1 - abar[l - 1]) * eps) / np.sqrt(1 - betas[l - 1])
        out = links[l - 1](z @ unit.T + shift[l] * mean)
        np.testing.assert_allclose(
            np.linalg.solve(unit, (out - shift[l - 1] * mean).T).T, by_hand, rtol=1e-9, atol=1e-9
        )


def rounding(network: denoiser.Denoiser, z: Array, level: int) -> Array:
    """How far the network in single precision can be from the exact one, whatever order a processor adds in, (n, d).

    A sum of k rounded products is within gamma_k = k u / (1 - k u) of the exact one, relative to the sum of their sizes,
    with u = 2^-24 (Higham, 2002, section 3.1); relu passes an error on at most as it is. k counts the products, the
    constants that are added, and the roundings of what goes in.
    """

    def gamma(k: int) -> float:
        return k * 2.0**-24 / (1 - k * 2.0**-24)

    def plain(part: torch.Tensor) -> Array:
        return part.detach().double().numpy()

    step = plain(network.features @ network.mixing)[level]
    out, error = z, np.zeros_like(z)
    for i, (A, c) in enumerate((plain(A), plain(c)) for A, c in network.layers):
        shift = c + step if i == 0 else c
        size = np.abs(out) @ np.abs(A).T + np.abs(c) + (np.abs(step) if i == 0 else 0.0)
        bound = gamma(A.shape[1] + 8)
        error = (1 + bound) * error @ np.abs(A).T + bound * size
        out = out @ A.T + shift
        if i < len(network.layers) - 1:
            out = np.maximum(out, 0.0)
    kept, noised = plain(network.signal_scale)[level], plain(network.noise_scale)[level]
    found: Array = (1 + gamma(4)) * kept * error + gamma(4) * (kept * np.abs(out) + noised * np.abs(z))
    return found


def test_the_trained_links_are_the_float32_network(trained: Pretrained, rng: np.random.Generator) -> None:
    """What was trained in single precision and what decides in double precision differ by single precision's rounding."""
    abar = np.cumprod(1 - trained.betas)
    z = rng.standard_normal((200, 2))
    links = chain_links(np.zeros(2), np.eye(2), trained.betas, trained.layers, trained.steps)
    # features = identity: the steps' vectors themselves are the mixing matrix
    network = denoiser.Denoiser(abar, trained.layers, np.eye(20), trained.steps, torch.empty(0, dtype=torch.float32))
    for l in (1, 2, 10, 20):
        with torch.no_grad():
            eps = network(torch.as_tensor(z, dtype=torch.float32), torch.full((200,), l - 1)).double().numpy()
        scale = trained.betas[l - 1] / np.sqrt(1 - abar[l - 1]) / np.sqrt(1 - trained.betas[l - 1])
        by_hand = z / np.sqrt(1 - trained.betas[l - 1]) - scale * eps
        tolerance = scale * rounding(network, z, l - 1) + 1e-12 * np.abs(by_hand).max()  # and double precision's own
        assert (np.abs(links[l - 1](z) - by_hand) <= tolerance).all()
        assert tolerance.max() < 1e-2 * np.abs(by_hand).max()  # so tight that a wrong formula would show


# ---- training


@pytest.mark.slow
def test_a_gaussian_is_learned_with_its_mean_and_covariance() -> None:
    V = np.array([[4.0, 1.5], [1.5, 1.0]])
    mean = np.array([10.0, -2.0])
    data = np.random.default_rng(0).multivariate_normal(mean, V, 2000)
    made = pretrain(data, 20, epochs=300, batch=512)
    drawn = made.sample(40_000, seed=1)
    scale = np.sqrt(np.diag(V))
    np.testing.assert_allclose(drawn.mean(axis=0) / scale, data.mean(axis=0) / scale, atol=0.06)
    np.testing.assert_allclose(
        np.cov(drawn.T) / np.outer(scale, scale), np.cov(data.T) / np.outer(scale, scale), atol=0.08
    )


def test_a_swiss_roll_is_learned_far_better_than_its_gaussian(trained: Pretrained, roll: Array) -> None:
    truth = swiss_roll(5000, np.random.default_rng(7))
    rng = np.random.default_rng(8)
    gaussian = rng.multivariate_normal(roll.mean(axis=0), np.cov(roll.T), 5000)
    assert sliced_wasserstein(trained.sample(5000, 9), truth) < 0.45 * sliced_wasserstein(gaussian, truth)
    assert trained.history.held_out.min() < 0.9 * trained.history.held_out[0]


def test_scale_and_place_of_the_data_do_not_matter(roll: Array) -> None:
    """The same rows in other units give the same chain in those units, up to single precision's rounding."""
    M, b = np.array([[300.0, 100.0], [0.0, 20.0]]), np.array([-1e4, 5.0])
    plain = pretrain(roll[:200], 5, epochs=20).sample(500, 1)
    moved = pretrain(roll[:200] @ np.diag([1e-3, 1e-3]), 5, epochs=20).sample(500, 1)
    np.testing.assert_allclose(moved * 1e3, plain, atol=1e-3)
    sheared = pretrain(roll[:200] @ M + b, 5, epochs=20)
    np.testing.assert_allclose(sheared.sample(20_000, 1).mean(axis=0), sheared.mean, atol=0.05 * 300)


def test_the_same_seed_gives_the_same_prior(roll: Array) -> None:
    first, second, other = (pretrain(roll[:300], 6, epochs=50, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.steps, second.steps)
    for (A, c), (B, d) in zip(first.layers, second.layers, strict=True):
        np.testing.assert_array_equal(A, B)
        np.testing.assert_array_equal(c, d)
    np.testing.assert_array_equal(first.sample(10), second.sample(10))
    assert not np.array_equal(first.steps, other.steps)


def test_training_stops_when_the_held_out_rows_get_no_better() -> None:
    """Thirty points in six dimensions are soon known by heart; the weights kept are those of the best look."""
    data = np.random.default_rng(2).standard_normal((30, 6))
    seen: list[tuple[int, int, float, float]] = []
    made = pretrain(data, 10, patience=5, progress=lambda *told: seen.append(told))
    history = made.history
    assert history.steps[0] == 0 and history.steps[-1] < 6000
    assert history.best == history.steps[history.held_out.argmin()]
    assert history.steps[-1] == history.best + 5 * 50
    assert [told[0] for told in seen] == history.steps[1:].tolist()
    assert [told[3] for told in seen] == history.held_out[1:].tolist() and seen[0][1] == 6000


def test_without_held_out_rows_it_trains_to_the_end() -> None:
    data = np.random.default_rng(2).standard_normal((10, 2))
    made = pretrain(data, 4, held_out=0.0, epochs=120)
    assert made.history.best == 120 and np.isnan(made.history.held_out).all()


@pytest.mark.parametrize(("n", "d", "depth"), [(2, 1, 1), (2, 3, 2), (10, 2, 100), (10, 64, 5), (500, 64, 3)])
def test_all_sizes_give_a_sound_prior(n: int, d: int, depth: int) -> None:
    data = np.random.default_rng(n).standard_normal((n, d)) * np.geomspace(1, 1e-3, d)
    made = pretrain(data, depth, epochs=60)
    prior = made.prior(5)
    assert prior.depth == depth and prior.covariances.shape == (depth + 1, d, d)
    drawn = made.sample(200)
    assert drawn.shape == (200, d) and np.isfinite(drawn).all()
    assert (np.abs(drawn - made.mean) < 10 * np.sqrt(np.diag(made.covariance))).all()


def test_shrinkage_fades_with_rows_and_keeps_the_total() -> None:
    rng = np.random.default_rng(0)
    for n in (3, 30, 30_000):
        data = rng.standard_normal((n, 4)) * [3.0, 1.0, 0.3, 0.0]
        S = np.cov(data.T, bias=True)
        V = _covariance(data)
        np.testing.assert_allclose(np.trace(V), np.trace(S))
        assert np.linalg.eigvalsh(V).min() > 0
    np.testing.assert_allclose(V, S, atol=2e-3)


# ---- the prior


def test_the_first_covariance_follows_the_reading_of_the_chain(trained: Pretrained) -> None:
    V = trained.covariance
    np.testing.assert_allclose(trained.prior(9).covariances[0], trained.betas[0] * V)
    np.testing.assert_allclose(trained.prior(9, shared=True).covariances[0], V)
    np.testing.assert_allclose(trained.prior(9, True, first_covariance="schedule").covariances[0], trained.betas[0] * V)
    np.testing.assert_allclose(trained.prior(9, first_covariance=0.3).covariances[0], 0.3 * np.eye(2))
    np.testing.assert_allclose(trained.prior(9).covariances[-1], V)
    factors = trained.prior(9).covariances[:, 0, 0] / V[0, 0]
    assert (np.diff(factors) > 0).all()  # variances rise with the level (thesis, Appendix B.6.2)
    with pytest.raises(InvalidInput, match="first_covariance"):
        trained.prior(9, first_covariance="narrow")


def test_posterior_variances_rise_and_are_below_beta(roll: Array) -> None:
    made = pretrain(roll[:50], 12, epochs=1, variances="posterior")
    assert (np.diff(made.variances) >= 0).all() and (made.variances[1:] < made.betas[1:]).all()
    assert made.variances[0] == made.variances[1]


def test_an_agent_decides_and_learns_with_it(trained: Pretrained) -> None:
    world = ma.worlds.SwissRoll(30, noise=0.3, seed=2)
    for shared in (False, True):
        agent = ma.dTS(trained.prior(30, shared), ma.Linear(0.3), seed=0)
        for x in world.contexts(20):
            a = agent.decide(x)
            agent.observe(x, a, world.reward(x, a))
        assert agent.played > 1


def test_saved_and_loaded_it_is_the_same(trained: Pretrained, tmp_path: Path) -> None:
    trained.save(tmp_path / "prior")
    again = ma.load(tmp_path / "prior")
    np.testing.assert_array_equal(again.sample(50, 1), trained.sample(50, 1))
    np.testing.assert_array_equal(again.history.held_out, trained.history.held_out)
    assert (again.rows, again.seconds, again.first_covariance) == (2000, trained.seconds, None)
    assert repr(again) == repr(trained)
    with pytest.raises(StorageError, match="no such folder"):
        ma.load(tmp_path / "nothing")


def test_loading_and_deciding_need_no_torch(trained: Pretrained, tmp_path: Path) -> None:
    trained.save(tmp_path)
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import manyarms as ma\n"
        f"prior = ma.load({str(tmp_path)!r}).prior(10)\n"
        "agent = ma.dTS(prior, seed=0); agent.observe([0.1, 0.2], agent.decide([0.1, 0.2]), 1.0)\n"
        "try:\n    ma.pretrain([[1.0, 2.0], [3.0, 4.0]])\n"
        "except ma.errors.MissingExtra as error:\n    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert "pip install 'manyarms[torch]'" in told.stdout


# ---- bad input

GOOD = np.random.default_rng(0).standard_normal((20, 2))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "at least 2 rows"),
        (np.empty((0, 3)), "at least 2 rows"),
        (np.empty((3, 0)), "at least 2 rows"),
        ([1.0, 2.0, 3.0], "at least 2 rows"),
        ([[1.0, 2.0]], "at least 2 rows"),
        (np.ones((10, 3)) * 7.3, "estimates that differ"),
        ([[1.0, np.nan], [2.0, 3.0]], r"nan at position \(0, 1\)"),
        ([[1.0, np.inf], [2.0, 3.0]], "finite"),
        ([["a", "b"], ["c", "d"]], "one row per action"),
    ],
)
def test_estimates_that_nothing_can_be_learned_from(data: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        pretrain(data)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"depth": 0}, "depth"),
        ({"depth": 5, "schedule": [0.5, 0.9, 0.99]}, "as many layers as the schedule has steps"),
        ({"schedule": "square"}, "schedule"),
        ({"hidden": 0}, "hidden"),
        ({"hidden": ()}, "hidden"),
        ({"epochs": 0}, "epochs"),
        ({"batch": -1}, "batch"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"held_out": 1.5}, "held_out"),
        ({"patience": 0}, "patience"),
        ({"variances": "learned"}, "'beta' or 'posterior'"),
        ({"first_covariance": "wide"}, "'schedule', 'spread'"),
        ({"first_covariance": -1.0}, "first_covariance"),
        ({"device": "abacus"}, "device: expected a device of PyTorch"),
        ({"device": "meta"}, "device: expected a device of PyTorch"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        pretrain(GOOD, **options)  # type: ignore[arg-type]


def test_a_learning_rate_beyond_all_bounds_is_told() -> None:
    with pytest.raises(InvalidInput, match="learning_rate: expected a smaller one"):
        pretrain(GOOD, 5, learning_rate=1e18, held_out=0.0)


def test_missing_torch_is_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "manyarms.priors.denoiser", raising=False)
    monkeypatch.delattr("manyarms.priors.denoiser", raising=False)
    with pytest.raises(MissingExtra, match=r"manyarms\[torch\]") as told:
        pretrain(GOOD)
    assert told.value.extra == "torch"

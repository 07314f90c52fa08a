"""What the proofs say of objectives: concavity, plateaus, local maxima, constants of convergence; and the experiments' sizes."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from manyarms._base.typing import Array
from manyarms.errors import DataError, InvalidInput
from manyarms_thesis.catalogue import Experiment
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import items_of
from manyarms_thesis.harness.work import execute
from manyarms_thesis.pwll import landscape
from manyarms_thesis.pwll.convergence import CONVERGENCE, checkpoints_of
from manyarms_thesis.pwll.finite_softmax import FiniteSoftmax, Objective, climb, lattice, strict_maxima
from manyarms_thesis.pwll.landscape import LANDSCAPE
from manyarms_thesis.pwll.maxima import MAXIMA, corners, instance, maxima_from
from manyarms_thesis.pwll.plateau import PLATEAU, exponent, steps_from, steps_to_escape
from manyarms_thesis.pwll.stochastic_ascent import (
    SmallLog,
    balanced_step,
    convex_bound,
    drawn_log,
    largest_noise,
    optimum,
    steepest_curvature,
    stochastic_ascent,
    strong_bound,
)

BOTH = pytest.mark.parametrize("objective", ["likelihood", "value"])
OURS = (LANDSCAPE, PLATEAU, MAXIMA, CONVERGENCE)
ALL = pytest.mark.parametrize("experiment", OURS, ids=lambda e: e.name)


def drawn(seed: int, contexts: int = 3, K: int = 5, dim: int = 2) -> FiniteSoftmax:
    rng = np.random.default_rng(seed)
    return FiniteSoftmax(
        rng.standard_normal((contexts, K, dim)), rng.random((contexts, K)), rng.standard_normal((contexts, K))
    )


@BOTH
def test_gradients_and_hessians_are_those_of_the_objective(objective: Objective) -> None:
    problem, theta, tiny = drawn(0), np.array([[0.3, -0.7], [1.1, 0.2]]), 1e-6
    slope = np.zeros((2, 2))
    curvature = np.zeros((2, 2, 2))
    for j in range(2):
        move = tiny * np.eye(2)[j]
        slope[:, j] = (problem.of(theta + move, objective) - problem.of(theta - move, objective)) / (2 * tiny)
        up, down = (problem.gradient(theta + sign * move, objective) for sign in (1, -1))
        curvature[:, :, j] = (up - down) / (2 * tiny)
    np.testing.assert_allclose(problem.gradient(theta, objective), slope, atol=1e-8)
    np.testing.assert_allclose(problem.hessian(theta, objective), curvature, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_is_concave_everywhere_and_the_value_is_not(seed: int) -> None:
    problem = drawn(seed)
    theta = np.random.default_rng(seed).standard_normal((200, 2)) * np.geomspace(0.1, 30, 200)[:, None]
    scale = np.abs(problem.hessian(theta, "likelihood")).max()
    assert np.linalg.eigvalsh(problem.hessian(theta, "likelihood")).max() <= 1e-12 * scale
    assert np.linalg.eigvalsh(problem.hessian(theta, "value")).max() > 1e-3


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidInput, match="weights"):
        FiniteSoftmax(np.zeros((1, 3, 2)), np.zeros((1, 4)))


def test_the_best_policies_are_known_in_closed_form() -> None:
    problem = landscape.problem_of(np.array([0.3, 0.1, 0.6]))
    end = climb(problem, np.zeros((1, 2)), "likelihood")
    np.testing.assert_allclose(problem.probabilities(end)[0, 0], [0.3, 0.1, 0.6], atol=1e-9)
    assert problem.distance(end, "likelihood")[0] < 1e-9
    far = np.array([[-50.0, -50.0]])
    assert problem.distance(far, "value")[0] < 1e-12
    assert problem.distance(np.array([[50.0, 0.0]]), "value")[0] > 0.99
    # a context without weight has no preference
    nothing = landscape.problem_of(np.zeros(3))
    assert nothing.distance(np.zeros((1, 2)), "value")[0] == pytest.approx(0.0)


def test_a_log_of_the_toy_adds_up_to_clipped_weights() -> None:
    limit = landscape.logged_weights(n=400_000, tau=0.01, seed=0).weights[0]
    np.testing.assert_allclose(limit, [0.002 * 0.9 / 0.01, 0.003 * 0.7 / 0.01, 0.2], rtol=0.1)
    first, second = (landscape.logged_weights(n=60, tau=0.001, seed=5).weights for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_paths_end_where_ascent_ends() -> None:
    problem = landscape.problem_of(np.array([0.3, 0.1, 0.6]))
    starts = lattice(-5, 5, 3)
    path = problem.path(starts, "value", 0.5, 40)
    np.testing.assert_array_equal(path[0], starts)
    np.testing.assert_allclose(path[-1], problem.ascend(starts, "value", 0.5, 40))


@BOTH
@pytest.mark.parametrize("step", [1.0, 0.3])
def test_one_variable_is_enough_on_the_one_hot_instance(objective: Objective, step: float) -> None:
    K = 60
    short = steps_to_escape(K, objective, step)
    full = steps_from(np.zeros(K), objective, step)
    assert short[0] == full[0]
    assert short[1] == pytest.approx(full[1], rel=1e-9)


def test_ips_needs_as_many_steps_as_the_proofs_say() -> None:
    sizes = np.array([50.0, 500.0, 5_000.0])
    for step in (1.0, 0.1):
        steps = np.array([steps_to_escape(int(K), "value", step)[0] for K in sizes])
        assert (steps >= 2 * sizes / 99).all()
        assert (steps >= (sizes - 10) * (1 - 1 / sizes) / step).all()
        assert (steps <= sizes / (0.77 * step) + 1).all()
        assert exponent(sizes, steps) == pytest.approx(1.0, abs=0.05)
    # no step lets 1/pi fall by more than 9/2, from any start by more than twice the step
    for seed in range(5):
        start = np.random.default_rng(seed).standard_normal(40)
        assert steps_from(start, "value", 1.0)[1] <= 2.0


def test_pwll_needs_about_log_K_steps() -> None:
    for K in (100, 10_000, 10**6, 10**9):
        for step in (1.0, 0.1):
            needed = math.log((K - 1) / 9) / step
            steps = steps_to_escape(K, "likelihood", step)[0]
            assert needed * (1 - 1 / K) <= steps <= needed / 0.9 + 1
    # and as many steps as weights are small
    assert steps_to_escape(1_000, "likelihood", 1.0, weight=1e-3)[0] > 1_000


def test_a_plateau_may_be_longer_than_our_patience() -> None:
    assert math.isnan(steps_to_escape(1_000, "value", 1.0, most=10)[0])
    assert math.isnan(steps_from(np.zeros(100), "value", 1.0, most=10)[0])


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5])
def test_the_construction_has_as_many_maxima_as_corners(dim: int) -> None:
    problem = instance(np.random.default_rng(dim).uniform(0.02, 0.12, size=dim))
    places, _ = maxima_from(problem, corners(dim, 4.0), "value")
    assert problem.features.shape[1] == 8 * dim and len(places) == 2**dim
    assert len(np.unique(np.sign(places), axis=0)) == 2**dim
    ends = climb(problem, places, "value")
    assert strict_maxima(problem, ends, "value", 1e-6).all()
    # nothing near is higher
    rng = np.random.default_rng(0)
    for end in ends:
        around = end + 0.05 * rng.standard_normal((50, dim))
        assert problem.of(around, "value").max() < problem.of(end[None], "value")[0]
    assert len(maxima_from(problem, corners(dim, 4.0), "likelihood")[0]) == 1


def test_the_construction_has_no_more_maxima_than_that() -> None:
    """h' is a sum of four exponentials with alternating signs: three zeros at most, whatever v."""
    problem = instance(np.array([0.05]))
    features, rewards = problem.features[0, :, 0], problem.weights[0]
    theta = np.linspace(-30, 30, 20_001)
    for v in np.linspace(0.01, 0.99, 25):
        slope = ((rewards - v) * features * np.exp(theta[:, None] * features - 1.25 * np.abs(theta[:, None]))).sum(
            axis=1
        )
        assert (np.diff(np.sign(slope)) != 0).sum() <= 3
    assert len(maxima_from(problem, lattice(-12, 12, 200, 1), "value")[0]) == 2


def test_free_logits_of_one_context_have_no_stationary_point() -> None:
    """The gradient is pi(a)(r(a) - V): not zero at a finite place unless all rewards are equal."""
    K = 6
    problem = FiniteSoftmax(np.eye(K)[None], np.random.default_rng(1).random((1, K)))
    theta = 3 * np.random.default_rng(2).standard_normal((500, K))
    pi = problem.probabilities(theta)[:, 0]
    away = np.abs(problem.weights[0] - problem.of(theta, "value")[:, None])
    np.testing.assert_allclose(np.abs(problem.gradient(theta, "value")), pi * away, atol=1e-15)
    assert (pi * away).max(axis=1).min() > 0


def small_log(seed: int) -> SmallLog:
    return drawn_log(contexts=6, K=5, dim=3, n=150, tau=0.05, seed=seed)


def two_sided() -> SmallLog:
    """Two opposite actions of norm 2: the likelihood of both."""
    return SmallLog(np.array([[[2.0, 0.0], [-2.0, 0.0]]]), np.array([0, 0]), np.array([0, 1]), np.array([3.0, 3.0]))


def test_the_smoothness_constant_is_attained() -> None:
    log = two_sided()
    H, G = log.bounds
    assert np.linalg.eigvalsh(-log.problem.hessian(np.zeros((1, 2)), "likelihood")).max() == pytest.approx(G * H**2)


def test_the_variance_constant_is_approached() -> None:
    """Two contexts whose logged features point opposite ways, while theta prefers the other action in both."""
    tilt, H, G = 0.02, 1.5, 2.0
    along = math.sqrt(1 - tilt**2)
    logged = H * np.array([[along, -tilt], [-along, -tilt]])
    log = SmallLog(np.stack([logged, -logged], axis=1), np.array([0, 1]), np.array([0, 0]), np.array([G, G]))
    noise = log.noise_at(np.array([0.0, 1_000.0]))
    assert noise <= 4 * G**2 * H**2
    assert noise == pytest.approx(4 * G**2 * H**2, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_constants_bound_what_brute_force_finds(seed: int) -> None:
    log = small_log(seed)
    H, G = log.bounds
    assert H <= 1.0
    top, bottom = steepest_curvature(log.problem, seed)
    assert 0 < top <= G * H**2
    assert bottom >= -1e-12  # so that adding lam gives lam at least ...
    assert bottom <= 1e-6 * top  # ... and no more: far from the origin no other curvature is left
    assert largest_noise(log, seed, 50) <= 4 * G**2 * H**2


def test_the_gradients_of_rows_add_up() -> None:
    log = small_log(0)
    theta = np.array([0.2, -0.4, 1.0])
    total = -log.problem.gradient(theta[None], "likelihood")[0]
    np.testing.assert_allclose(log.row_gradients(theta).mean(axis=0), total, atol=1e-12)


def test_the_optimum_is_where_any_start_ends() -> None:
    log = small_log(0)
    best = optimum(log.problem, 0.0)
    others = climb(log.problem, 5 * np.random.default_rng(0).standard_normal((10, 3)), "likelihood")
    np.testing.assert_allclose(others, np.tile(best, (10, 1)), atol=1e-6)
    lam = 0.3
    pulled = optimum(log.problem, lam)
    np.testing.assert_allclose(log.problem.gradient(pulled[None], "likelihood")[0], lam * pulled, atol=1e-9)


def test_a_log_without_a_maximum_is_refused_but_for_l2() -> None:
    """One action, rewarded always: its logit goes to infinity."""
    log = SmallLog(np.eye(2)[None], np.array([0, 0]), np.array([0, 0]), np.array([1.0, 1.0]))
    with pytest.raises(DataError, match="no maximum"):
        optimum(log.problem, 0.0)
    assert np.isfinite(optimum(log.problem, 0.1)).all()


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_full_batch_of_one_row_is_gradient_ascent(lam: float) -> None:
    """With one row there is no noise: iterates and averages can be told."""
    log = SmallLog(np.array([[[1.0], [-1.0]]]), np.array([0]), np.array([0]), np.array([2.0]))
    iterates, averages = stochastic_ascent(log, 0.1, 3, lam, [1, 2, 3], 2, seed=0)
    theta, seen = 0.0, []
    for t in range(3):
        seen.append(theta)
        theta += 0.1 * (2.0 * (1 - math.tanh(theta)) - lam * theta)
        np.testing.assert_allclose(iterates[t], theta)
        np.testing.assert_allclose(averages[t], np.mean(seen))


@pytest.mark.parametrize("batch", [1, 8])
def test_stochastic_ascent_stays_below_the_bounds(batch: int) -> None:
    log = small_log(3)
    H, G = log.bounds
    smooth, times = G * H**2, [10, 100, 400]
    T = np.array(times, dtype=float)
    # the sharper form: the noise at the optimum alone
    best = optimum(log.problem, 0.0)
    step = 1 / (4 * smooth)
    _, means = stochastic_ascent(log, step, batch, 0.0, times, 16, seed=1)
    gap = log.problem.of(best[None], "likelihood") - log.problem.of(means.reshape(-1, 3), "likelihood")
    bound = convex_bound(float(np.linalg.norm(best)), step, T, log.noise_at(best) / batch)
    assert (gap.reshape(3, 16).mean(axis=1) <= bound).all()
    lam = 0.05 * smooth
    best = optimum(log.problem, lam)
    step = 1 / (2 * (smooth + lam))
    iterates, _ = stochastic_ascent(log, step, batch, lam, times, 16, seed=1)
    away = np.square(iterates - best).sum(axis=2).mean(axis=1)
    assert (away <= strong_bound(float(np.linalg.norm(best)), step, T, log.noise_at(best) / batch, lam)).all()


def test_the_balanced_step_makes_the_bound_least() -> None:
    step = balanced_step(2.0, 3.0, 0.1, 100)

    def bound(eta: float) -> Array:
        return convex_bound(2.0, eta, np.array(100.0), 3.0)

    assert bound(step) < min(bound(1.05 * step), bound(0.95 * step))
    assert balanced_step(2.0, 3.0, 1e6, 100) == pytest.approx(1 / 4e6)


def test_checkpoints_end_at_the_end() -> None:
    assert checkpoints_of(1_000)[0] == 10 and checkpoints_of(1_000)[-1] == 1_000
    assert checkpoints_of(3) == [3]


def test_sizes_of_the_thesis() -> None:
    assert np.array_equal(landscape.REWARDS, [0.9, 0.7, 0.2]) and landscape.FIXED == 1.0
    assert np.array_equal(landscape.LOGGING, [0.002, 0.003, 0.995])
    assert {cell.parameters["n"] for cell in LANDSCAPE.cells("paper")} >= {60}
    assert max(cell.parameters["K"] for cell in PLATEAU.cells("paper")) == 1_000_000


TINY = {
    "pwll-landscape": {"logs": ((60, 0.001),), "runs": 2, "steps": 50},
    "pwll-plateau": {"K": [30, 100], "drawn": [20], "runs": 2},
    "pwll-maxima": {"d": [1, 2], "runs": 2},
    "pwll-convergence": {
        "contexts": 5, "K": 4, "d": 2, "n": 100, "batches": [1, 4], "strengths": [0.1], "steps": 60, "repeats": 4, "runs": 2,
    },
}  # fmt: skip


@ALL
def test_claims_and_figures_are_made(experiment: Experiment, tmp_path: Path) -> None:
    cells = experiment.build(TINY[experiment.name])
    rows = {
        (item.cell.panel, item.method, number): columns
        for item in items_of(experiment.name, cells, seed=0)
        for number, columns in execute(item).items()
    }
    results = Results(experiment.name, "smoke", cells, rows)
    made = experiment.judge(results)
    assert made and all(np.isfinite(claim.figure) for claim in made)
    drawings = experiment.draw(results, tmp_path)
    assert drawings and all(one.path.exists() and one.path.with_suffix(".png").exists() for one in drawings)
    assert len({one.caption for one in drawings}) == len(drawings) and all(
        one.caption.endswith(".") for one in drawings
    )
    for line in (number for claim in made for number in re.findall(r"\d+", claim.thesis_lines)):
        assert 2_150 <= int(line) <= 5_400


@ALL
def test_questions_and_settings_are_told_at_every_scale(experiment: Experiment) -> None:
    assert experiment.question.endswith("?")
    for scale in experiment.scales:
        assert "{" not in experiment.setting_at(scale)


def test_only_logs_of_sixty_rows_are_the_thesis_s() -> None:
    cells = LANDSCAPE.cells("quick")
    assert {cell.parameters["n"]: cell.variant for cell in cells} == {60: "", 6_000: "a log of 6,000 rows"}
    # results that are stored already keep their names
    assert [cell.panel for cell in cells] == ["n=60, τ=0.01", "n=60, τ=0.001", "n=6,000, τ=0.001"]


def test_bounds_that_say_less_than_the_start_do_not_count() -> None:
    """The printed noise is so generous at few rows a step that the bound is above the first gap for all of a short run."""
    cells = CONVERGENCE.build(TINY["pwll-convergence"])
    rows = {
        (item.cell.panel, item.method, number): columns
        for item in items_of("pwll-convergence", cells, seed=0)
        for number, columns in execute(item).items()
    }
    made = CONVERGENCE.claims(Results("pwll-convergence", "smoke", cells, rows))
    (plain,) = (one for one in made if one.statement.startswith("Without ℓ2"))
    assert plain.verdict == "undecided" and "says nothing" in plain.detail
    # a bound below what the start has does count
    for (_, _, _), columns in rows.items():
        columns["bound"] = columns["gap"] * 1.01  # type: ignore[index]
    made = CONVERGENCE.claims(Results("pwll-convergence", "smoke", cells, rows))
    (plain,) = (one for one in made if one.statement.startswith("Without ℓ2"))
    assert plain.parts[0] > 1 and "do not count" in plain.detail

"""The shipped check of policies, run over every kind there is, and shown to catch what it should."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from manyarms import checks, policies
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.policies import POLICIES, StreamedPolicy

D, K = 3, 12
rng = np.random.default_rng(4)
WEIGHTS = rng.standard_normal((K, D))
LISTS = np.stack([rng.choice(K, 5, replace=False) for _ in range(4)])
ENCODER = policies.Layers([rng.standard_normal((D, 4)), rng.standard_normal((4, D))], [np.ones(4), np.zeros(D)])
MADE: dict[str, Callable[[], StreamedPolicy]] = {
    "softmax": lambda: policies.SoftmaxPolicy(WEIGHTS, 0.7, policies.Projection(np.eye(D))),
    "top-softmax": lambda: policies.TopSoftmaxPolicy(WEIGHTS, 4, 0.5),
    "fixed": lambda: policies.FixedPolicy(np.r_[np.zeros(2), np.full(K - 2, 1 / (K - 2))]),
    "uniform": lambda: policies.UniformPolicy(K),
    "epsilon-mixture": lambda: policies.EpsilonMixture(policies.SoftmaxPolicy(WEIGHTS, encoder=ENCODER), 0.2),
    "support-softmax": lambda: policies.SupportSoftmaxPolicy(-WEIGHTS, policies.TopSoftmaxPolicy(WEIGHTS, 5)),
    "two-stage": lambda: policies.TwoStagePolicy(WEIGHTS[:4], np.arange(K) % 4, WEIGHTS),
    "segment-softmax": lambda: policies.SegmentSoftmaxPolicy(WEIGHTS, WEIGHTS[:4], LISTS),
    "gaussian": lambda: policies.GaussianPolicy(WEIGHTS, 0.8),
    "mixed-logit": lambda: policies.MixedLogitPolicy(WEIGHTS, 0.5, draws=20_000),
}
TOLERANCE = {"gaussian": 1e-6, "mixed-logit": 0.02}


@pytest.mark.parametrize("name", MADE)
def test_every_kind_of_policy(name: str) -> None:
    assert MADE[name]().kind == name
    checks.check_policy(MADE[name], tolerance=TOLERANCE.get(name, 1e-8))


def test_no_registered_policy_is_left_out() -> None:
    assert set(POLICIES) == set(MADE)


def test_policies_made_of_functions() -> None:
    checks.check_policy(lambda: policies.FunctionPolicy(lambda X, ids: np.full(len(ids), 1 / K), K), saved=False)
    best = policies.SoftmaxPolicy(WEIGHTS)
    checks.check_policy(lambda: policies.DeterministicPolicy(best.decide, K), saved=False)


def test_what_is_no_distribution_is_caught() -> None:
    with pytest.raises(checks.CheckFailed, match="sum of the probabilities"):
        checks.check_policy(lambda: policies.FunctionPolicy(lambda X, ids: np.full(len(ids), 0.05), K), saved=False)

    class Absent(policies.UniformPolicy):
        def sample_rows(self, X, rng=None) -> Ints:  # type: ignore[no-untyped-def]
            return np.minimum(super().sample_rows(X, rng), K - 2)

    with pytest.raises(checks.CheckFailed, match="draws have the policy's law"):
        checks.check_policy(lambda: Absent(K))


def test_a_save_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POLICIES, "_parts", dict(POLICIES))

    class Forgetful(policies.FixedPolicy):
        def arrays(self) -> dict[str, Array]:
            return {"probabilities": np.full(K, 1 / K)}

    skewed = np.arange(K) / np.arange(K).sum()
    with pytest.raises(InvalidInput, match="a registered policy"):
        checks.check_policy(lambda: Forgetful(skewed))
    POLICIES.register("forgetful")(Forgetful)
    with pytest.raises(checks.CheckFailed, match="a loaded policy has the same probabilities"):
        checks.check_policy(lambda: Forgetful(skewed))

"""Policies as arms: their law under filters, and the questions that they cannot answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from live.making import X, a_live, contexts
from manyarms.errors import InvalidInput
from manyarms.live.joining import an_arm
from manyarms.live.records import Question
from manyarms.policies import FixedPolicy, Policy, SoftmaxPolicy, UniformPolicy

ALL = range(6)


POLICIES: list[Policy] = [
    UniformPolicy(6),
    FixedPolicy([0.4, 0.3, 0.2, 0.1, 0.0, 0.0]),
    FixedPolicy([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    FixedPolicy([0.999, 0.0006, 0.0004, 0.0, 0.0, 0.0]),
    SoftmaxPolicy(contexts(6, seed=8), temperature=0.7),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("retired", [frozenset(), frozenset({1}), frozenset({1, 6})])
@pytest.mark.parametrize(
    "filters", [(None, None), (None, [0]), (None, [0, 6]), ([0, 2, 4], None), ([4, 2, 7], [2]), ([4, 5], None)]
)
def test_policies_under_filters(policy: Policy, retired: frozenset[int], filters: tuple[Any, Any]) -> None:
    arm = an_arm("arm", policy)
    arm.take_over(retired)
    view, asked = arm.view(), Question(X, *filters)
    law = [*policy.probabilities_of_many(X[None], np.arange(6)[None])[0].tolist(), 0.0, 0.0]
    allowed = [a for a in (filters[0] or ALL) if a not in retired and a not in (filters[1] or [])]
    mass = sum(law[a] for a in allowed)
    expected = {a: law[a] / mass if mass > 0 else 1 / len(allowed) for a in allowed}
    found = [view.propensity(asked, a, 0).value for a in range(8)]
    np.testing.assert_allclose(found, [expected.get(a, 0.0) for a in range(8)], atol=1e-12)
    n = 400
    taken = Counter(view.decide(asked, draw)[0] for draw in range(n))
    for a in range(8):
        chance = min(1.0, found[a])
        assert 2 * min(binom.cdf(taken[a], n, chance), binom.sf(taken[a] - 1, n, chance)) > 1e-9


def test_questions_that_a_policy_cannot_answer() -> None:
    live = a_live(UniformPolicy(6))
    for asked in ({"k": 2}, {"candidates": [1, 1]}, {"candidates": [-1]}, {"exclude": [*ALL]}, {"candidates": []}):
        with pytest.raises(InvalidInput):
            live.decide(X, **asked)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        live.decide(action_contexts=contexts(6))
    assert live.learn() == 0
    assert live.decide(X, exclude=[0, 1, 2, 3, 4]).action == 5
    live.close()


def test_a_decision_and_its_propensity_are_one_pass_over_the_actions() -> None:
    policy = SoftmaxPolicy(np.linspace(0, 50, 6000 * len(X)).reshape(6000, -1).astype(np.float32))
    passes = Counter[str]()
    scores = policy._linear.scores

    def counted(x: Any, first: int, last: int, out: Any = None) -> Any:
        passes["actions"] += last - first
        return scores(x, first, last, out)

    policy._linear.scores = counted  # type: ignore[method-assign]
    arm = an_arm("arm", policy)
    arm.take_over(frozenset({1, 5990}))
    view = arm.view()
    for asked in (Question(X), Question(X, None, [4, 5999]), Question(X, [5998, 2, 5990])):
        passes.clear()
        actions, known = view.decide_with_propensity(asked, 7)
        assert 6000 <= passes["actions"] <= 6000 + 2048
        assert known is not None
        assert actions == view.decide(asked, 7)
        assert known.value == view.propensity(asked, actions[0], 7).value
        _, other = view.decide_with_propensity(asked, 7, of=2)
        assert other is not None
        assert other.value == view.propensity(asked, 2, 7).value

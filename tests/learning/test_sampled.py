"""Sampled normalisers: unbiased for Z, whatever the proposal, with a row's own actions counted once and exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manyarms.learning import SampledSoftmax, TopProposal
from manyarms.learning.optimisers import ParameterTable

ROWS, K, L = 6, 40, 5
SAMPLERS = {"uniform": SampledSoftmax(25), "top": TopProposal(25, 10, share=0.4, every=3)}


@pytest.fixture
def problem():
    draw = torch.Generator().manual_seed(3)
    h, beta = (torch.randn(n, L, dtype=torch.float64, generator=draw) for n in (ROWS, K))
    ids = torch.tensor([[0, 7], [3, -1], [5, 39], [39, -1], [20, 21], [8, 0]])
    return h, beta, ids


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_normaliser_is_unbiased(name, problem):
    h, beta, ids = problem
    scores, rng = h @ beta.T, np.random.default_rng(0)
    found = []
    for step in range(3000):
        lists, offsets = SAMPLERS[name].draw(h, beta, ids, step, rng)
        mass = (scores.gather(1, lists.clamp(min=0)) + offsets).exp() * (lists >= 0)
        found.append(mass.sum(dim=1))
    each, Z = torch.stack(found), scores.exp().sum(dim=1)
    error = each.std(dim=0) / len(found) ** 0.5
    assert float((error / Z).max()) < 0.03  # enough draws to see a wrong factor
    assert bool(((each.mean(dim=0) - Z).abs() < 4 * error).all())


@pytest.mark.parametrize("name", SAMPLERS)
def test_own_actions_come_first_and_only_once(name, problem):
    h, beta, ids = problem
    lists, offsets = SAMPLERS[name].draw(h, beta, ids, 0, np.random.default_rng(1))
    assert torch.equal(lists[:, :2], ids) and bool((offsets[:, :2] == 0).all())
    drawn = lists[:, 2:, None] == ids[:, None, :]
    assert not bool((drawn & (ids[:, None, :] >= 0)).any())


@pytest.mark.parametrize("kind", ["adam", "sgd", "adagrad"])
def test_steps_of_all_rows_are_steps_of_blocks_also_towards_an_anchor(kind):
    draw = torch.Generator().manual_seed(5)
    beta, anchor = (torch.randn(7, 3, dtype=torch.float64, generator=draw) for _ in range(2))
    one, other = (ParameterTable(beta.clone(), kind, pull=0.3, anchor=anchor) for _ in range(2))
    for _ in range(4):
        gradient = torch.randn(7, 3, dtype=torch.float64, generator=draw)
        one.begin(0.05)
        one.block(0, 7, gradient.clone())
        other.begin(0.05)
        other.rows(torch.arange(7), gradient.clone())
    assert torch.allclose(one.beta, other.beta, rtol=1e-12, atol=1e-14)
    still = ParameterTable(anchor.clone(), "sgd", pull=0.3, anchor=anchor)
    still.begin(0.05)
    still.rows(torch.tensor([2]), torch.zeros(1, 3, dtype=torch.float64))
    assert torch.equal(still.beta, anchor)

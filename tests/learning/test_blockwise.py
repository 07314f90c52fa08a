"""The blockwise softmax is the dense one: values and gradients, whatever the shapes and the blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyarms.learning import log_probability
from manyarms.learning.blockwise import Rooms, Upstream, measure, pull

SHAPES = st.tuples(st.integers(1, 9), st.integers(2, 40), st.integers(1, 7), st.integers(1, 45), st.integers(0, 10**6))


def problem(rows, actions, width, seed, dtype=torch.float64, scale=1.0):
    draw = torch.Generator().manual_seed(seed)
    h = torch.randn(rows, width, generator=draw, dtype=dtype) * scale
    beta = torch.randn(actions, width, generator=draw, dtype=dtype)
    ids = torch.randint(-1, actions, (rows, 3), generator=draw)
    ids[:, 0] = ids[0, 0].clamp(min=0)  # one action that all rows name
    return h, beta, ids


@settings(max_examples=40, deadline=None)
@given(SHAPES)
def test_log_probabilities_and_gradients_are_the_dense_ones(shape) -> None:
    rows, actions, width, size, seed = shape
    h, beta, ids = problem(rows, actions, width, seed)
    weights = torch.randn(ids.shape, dtype=h.dtype) * (torch.rand(ids.shape) > 0.3)  # some weights are zero

    def gradients(function):
        a, b = h.clone().requires_grad_(), beta.clone().requires_grad_()
        found = function(a, b)
        value = (torch.where(ids >= 0, found, 0.0) * weights).sum()
        value.backward()
        return value.detach(), a.grad, b.grad

    dense = gradients(lambda a, b: torch.log_softmax(a @ b.T, dim=1).gather(1, ids.clamp(min=0)))
    ours = gradients(lambda a, b: log_probability(a, b, ids, size))
    for got, wanted in zip(ours, dense, strict=True):
        assert torch.allclose(got, wanted, rtol=1e-12, atol=1e-12)


def test_gradcheck() -> None:
    h, beta, ids = problem(5, 11, 3, seed=3)
    h.requires_grad_()
    beta.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: log_probability(a, b, ids.clamp(min=0), 4), (h, beta))


def test_float32_agrees_with_float64_to_rounding() -> None:
    h, beta, ids = problem(64, 5_003, 32, seed=0, scale=0.5)
    ids = ids.clamp(min=0)
    results = []
    for dtype in (torch.float32, torch.float64):
        a, b = h.to(dtype).requires_grad_(), beta.to(dtype).requires_grad_()
        found = log_probability(a, b, ids, 512)
        found.mean().backward()
        results.append([t.double() for t in (found.detach(), a.grad, b.grad)])
    for got, wanted in zip(*results, strict=True):
        assert (got - wanted).norm() <= 1e-5 * wanted.norm()


@settings(max_examples=25, deadline=None)
@given(SHAPES, st.sampled_from([1.0, 200.0]))
def test_groups_and_expectations_and_their_gradients(shape, scale) -> None:
    """Also where scores are so large that a plain exponential would overflow."""
    rows, actions, width, size, seed = shape
    h, beta, ids = problem(rows, actions, width, seed, scale=scale)
    draw = torch.Generator().manual_seed(seed + 1)
    labels = torch.randint(0, 4, (actions,), generator=draw)
    labels[0] = 0
    groups = labels, labels[torch.randint(0, actions, (rows,), generator=draw)]
    table = torch.randn(rows, actions, generator=draw, dtype=h.dtype)
    by_group, by_value = (torch.randn(rows, generator=draw, dtype=h.dtype) for _ in range(2))
    single = torch.randn(rows, generator=draw, dtype=h.dtype)
    own = ids[:, 0]

    a, b = h.clone().requires_grad_(), beta.clone().requires_grad_()
    log_pi = torch.log_softmax(a @ b.T, dim=1)
    inside = labels == groups[1][:, None]
    log_mass = torch.where(inside, log_pi, -torch.inf).logsumexp(1)
    expectation = (log_pi.exp() * table).sum(1)
    value = (by_value * expectation + single * log_pi[torch.arange(rows), own]).sum()
    seen = log_mass > -600  # below, the mass itself is not a number any more
    (value + (by_group * log_mass)[seen].sum()).backward()

    values = lambda first, last: table[:, first:last]  # noqa: E731
    found = measure(h, beta, groups=groups, values=values, size=size)
    assert torch.allclose(found.log_z, torch.logsumexp(h @ beta.T, 1), rtol=1e-12)
    assert torch.allclose(found.log_mass[seen], log_mass.detach()[seen], rtol=1e-10, atol=1e-10)
    assert torch.allclose(found.expectation, expectation.detach(), rtol=1e-10, atol=1e-10)
    gradient = torch.zeros_like(beta)

    def receive(first, last, block):
        gradient[first:last] += block

    upstream = Upstream(torch.arange(rows), own, single, torch.where(seen, by_group, 0.0), by_value)
    for_h = pull(h, beta, found, upstream, groups=groups, values=values, receive=receive, want_h=True, size=size)
    assert torch.allclose(gradient, b.grad, rtol=1e-9, atol=1e-9)
    assert torch.allclose(for_h, a.grad, rtol=1e-9, atol=1e-9)


def test_a_safe_pass_equals_the_careful_one() -> None:
    h, beta, _ = problem(8, 100, 4, seed=1)
    assert torch.allclose(measure(h, beta, safe=True).log_z, measure(h, beta).log_z, rtol=1e-12)


@pytest.mark.parametrize(
    ("held", "size", "kept_from"),
    [
        (0, 18, None),
        (8 * 30, 18, 72),
        (8 * 50, 18, 54),
        (8 * 101, 18, 0),
        (10**6, 18, 0),
        (8 * 101, 101, 0),
        (8, 200, None),
    ],
)
def test_powers_that_are_kept_change_nothing_and_are_used(held, size, kept_from) -> None:
    """What can be held is kept from a whole block on; the second pass takes it as it is, and not from beta again."""
    h, beta, ids = problem(8, 101, 4, seed=2)
    upstream = Upstream(torch.arange(8), ids[:, 0], torch.randn(8, dtype=h.dtype))

    def gradients(rooms, table):
        found, got = measure(h, beta, safe=True, size=size, rooms=rooms), torch.zeros_like(beta)
        for_h = pull(h, table, found, upstream, safe=True, size=size, rooms=rooms, want_h=True,
                     receive=lambda first, last, block: got[first:last].copy_(block))  # fmt: skip
        return found.kept_from, got, for_h

    first, with_powers, for_h = gradients(Rooms(held), beta)
    assert first == kept_from
    _, without, for_h_without = gradients(None, beta)
    assert torch.allclose(with_powers, without, rtol=1e-12) and torch.allclose(for_h, for_h_without, rtol=1e-12)
    if kept_from is not None:  # another table in the second pass shows where its scores come from
        _, other, _ = gradients(Rooms(held), beta * 2)
        assert torch.allclose(other[kept_from:], without[kept_from:], rtol=1e-12)


def test_rooms_are_used_again_by_batches_of_other_sizes() -> None:
    """A batch of fewer rows, of more, of none: what an earlier one left in the rooms is never read."""
    rooms, (h, beta, ids) = Rooms(held=60), problem(9, 20, 3, seed=5)
    for rows in (6, 2, 9, 0, 4):
        upstream = Upstream(torch.arange(rows), ids[:rows, 0], torch.ones(rows, dtype=h.dtype))
        got = [torch.zeros_like(beta) for _ in range(2)]
        for one, own in zip(got, (rooms, None), strict=True):
            found = measure(h[:rows], beta, safe=True, size=7, rooms=own)
            pull(h[:rows], beta, found, upstream, safe=True, size=7, rooms=own,
                 receive=lambda first, last, block, one=one: one[first:last].copy_(block))  # fmt: skip
        assert torch.allclose(got[0], got[1], rtol=1e-12)


def test_no_rows_give_a_gradient_of_zero() -> None:
    h, beta, _ = problem(1, 10, 3, seed=0)
    empty = torch.empty(0, dtype=torch.int64)
    found, blocks = measure(h[:0], beta), []
    upstream = Upstream(empty, empty, torch.empty(0, dtype=h.dtype))
    pull(h[:0], beta, found, upstream, receive=lambda first, last, g: blocks.append(g), size=4)
    assert sum(len(g) for g in blocks) == 10
    assert all(float(g.abs().max()) == 0 for g in blocks)


def test_ids_are_checked_by_their_users_and_padding_has_no_probability() -> None:
    h, beta, _ = problem(2, 5, 3, seed=0)
    found = log_probability(h, beta, torch.tensor([[-1, 2], [3, -1]]))
    assert np.isneginf(found[0, 0].item()) and np.isneginf(found[1, 1].item())
    assert torch.isfinite(found[0, 1]) and torch.isfinite(found[1, 0])

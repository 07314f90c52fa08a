"""Parameters of corrections: kept as Python floats, and refused where nothing could be divided by them."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.weights import CORRECTIONS, Rule, Shrinkage

WITH_PARAMETER = [kind for kind in CORRECTIONS.values() if kind.parameter is not None]


@pytest.mark.parametrize("kind", WITH_PARAMETER, ids=lambda kind: kind.name)
def test_what_was_checked_is_what_is_kept(kind):
    for given in (np.float16(0.5), np.float32(0.5), decimal.Decimal("0.5")):
        made = kind(given)
        assert type(getattr(made, kind.parameter)) is float
        assert made == kind(0.5) and hash(made) == hash(kind(0.5))
        weights = made.weight(np.array([0.3]), np.array([0.1]), np.array([1.0]))
        np.testing.assert_array_equal(weights, kind(0.5).weight(np.array([0.3]), np.array([0.1]), np.array([1.0])))


@pytest.mark.parametrize("kind", WITH_PARAMETER, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "bad", [math.nan, -0.1, "0.5", [0.5], np.array([0.5, 0.5]), np.ma.masked, True, 10**400, -math.inf, 1j], ids=repr
)
def test_what_is_no_parameter(kind, bad):
    with pytest.raises(InvalidInput, match=kind.parameter):
        kind(bad)


@pytest.mark.parametrize("kind", WITH_PARAMETER, ids=lambda kind: kind.name)
@pytest.mark.parametrize("tiny", [5e-324, 1e-200, 1e-100])
def test_a_bound_on_weights_is_a_number_or_unknown(kind, tiny):
    """1 / 5e-324 is infinite: a parameter that small is refused, or gives no such bound."""
    try:
        made = kind(tiny)
    except InvalidInput:
        assert tiny < 1e-100
        return
    bound = made.bound()
    assert bound is None or math.isfinite(bound)


def test_infinity_corrects_nothing():
    for kind in (CORRECTIONS["ips-min"], Shrinkage):
        assert kind(np.float32(math.inf)).is_none


@pytest.mark.parametrize("kind", list(CORRECTIONS.values()), ids=lambda kind: kind.name)
@pytest.mark.parametrize("rows", [0, -1, 2.5, "3", True, 10**5000, np.array([3, 4])], ids=lambda rows: str(type(rows)))
def test_the_number_of_rows_is_checked_by_all(kind, rows):
    with pytest.raises(InvalidInput, match="rows"):
        kind.make(rows=rows)


def test_squares_beyond_all_numbers_shrink_to_nothing():
    """No warning, and no NaN: l w / (l + w^2) tends to 0."""
    pi, pi0 = np.array([1.0, 0.5]), np.array([1e-200, 0.25])
    np.testing.assert_allclose(Shrinkage(4.0).weight(pi, pi0), [0.0, 1.0])
    np.testing.assert_allclose(Shrinkage(4.0).effective_policy(pi, pi0), [0.0, 0.25])


@pytest.mark.parametrize("field", ["words", "default", "grid"])
def test_a_rule_is_words_and_functions(field):
    parts = {"words": "a half", "default": lambda n: 0.5, "grid": lambda n: (0.5,)} | {field: 3}
    with pytest.raises(InvalidInput, match=field):
        Rule(**parts)

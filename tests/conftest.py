"""What all tests share: deterministic property tests, short arrays in failure messages, one seeded generator."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, and no clock: a busy machine must not fail a test. `HYPOTHESIS_PROFILE=thorough`
# looks further, with new examples on each run.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=40,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

np.set_printoptions(precision=6, suppress=True, linewidth=120, threshold=50)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator of the test's own, the same in every run."""
    return np.random.default_rng(20240229)

"""Small bundles for tests, and the key that signs them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from manyarms.edge import EdgePolicy, Header, SigningKey

KEY = SigningKey(bytes(range(32)))
D = 3
IDS = ["apple", "pear", "fig", "plum", "ké", "6", "7"]


def a_policy(
    rule: str = "epsilon-greedy", *, seed: int = 0, draws: int = 8, ids: Any = None, **told: Any
) -> EdgePolicy:
    """A policy with parameters that follow from a seed."""
    rng = np.random.default_rng(seed)
    names = IDS if ids is None else ids
    tables = rng.normal(size=(draws if rule == "ensemble" else 1, len(names), D))
    now = time.time()
    defaults = {
        "created": now,
        "expires": now + 3600.0,
        "salt": rng.bytes(16),
        "epsilon": 0.0 if rule == "softmax" else 0.2,
    }
    header = Header(**{"agent": "agent", "version": 3, "rule": rule, "dim": D, **defaults, **told})
    return EdgePolicy(header, tables, names)


def a_bundle(rule: str = "epsilon-greedy", **options: Any) -> bytes:
    """The bytes of such a policy, signed."""
    return a_policy(rule, **options).to_bytes(KEY)

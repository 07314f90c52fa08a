"""Wrong arguments at the edge are refused by name, and what was given is not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from manyarms.edge import EdgePolicy, Header, SigningKey
from manyarms.errors import InvalidInput

HEADER = Header("agent", 0, "softmax", 3, 0.0, 1e11, bytes(16))
KEY = SigningKey(bytes(range(32)))


def tables() -> np.ndarray:
    return np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 4, 3)


def policy() -> EdgePolicy:
    return EdgePolicy(HEADER, tables(), range(4))


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("header", lambda: EdgePolicy(None, tables(), range(4))),
        ("tables", lambda: EdgePolicy(HEADER, tables().astype(str), range(4))),
        ("tables", lambda: EdgePolicy(HEADER, np.zeros((1, 4, 3), "M8[s]"), range(4))),
        ("tables", lambda: EdgePolicy(HEADER, tables().astype(float) * 1e60, range(4))),
        ("tables", lambda: EdgePolicy(HEADER, b"abc", range(4))),
        ("features", lambda: replace(HEADER, features="abc")),
        ("features", lambda: replace(HEADER, features=(1, 2, 3))),
        ("encoder", lambda: replace(HEADER, encoder=np.zeros((2, 2)))),
        ("key", lambda: policy().to_bytes("secret")),
        ("expired", lambda: EdgePolicy.read(policy().to_bytes(KEY), KEY.public, expired=np.array([True, False]))),
        ("exclude", lambda: policy().decide(np.ones(3), exclude=[2**70])),
    ],
)
def test_what_is_wrong_is_named(argument: str, call: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput) as found:
        call()
    assert found.value.argument == argument


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_policy_keeps_nothing_that_a_caller_can_change(kind: type) -> None:
    mine = tables().astype(kind)
    made = EdgePolicy(HEADER, mine, range(4))
    before = made.law(np.ones(3))
    mine[:] = 7.0
    assert made.law(np.ones(3)) == before
    context = np.ones(3)
    vector = made.vector(context)
    context[:] = 7.0
    assert (vector == 1.0).all()


def test_the_tables_of_a_bundle_are_not_copied() -> None:
    data = policy().to_bytes(KEY)
    read = EdgePolicy.read(data, KEY.public)
    assert not read._tables.flags.owndata and not read._tables.flags.writeable


def test_no_form_of_a_signing_key_shows_its_secret() -> None:
    for text in (repr(KEY), str(KEY), KEY._repr_html_(), f"{KEY}"):
        assert KEY.public in text and KEY.secret.hex() not in text and repr(KEY.secret) not in text

"""Calls that are wrong: they are refused by the name of what is wrong with them, and leave nothing behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from live.making import X, a_live, an_agent
from manyarms.errors import InvalidInput, LiveError


def test_what_cannot_become_a_store_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with pytest.raises(InvalidInput, match=r"agent: expected .* there is no store yet"):
        ma.live.open(path)
    with pytest.raises(InvalidInput, match="agent: expected an agent or a policy"):
        ma.live.open(path, "agent")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"store: .*got mysql://"):
        ma.live.open("mysql://me:Tr0ub4dor@host/shop", an_agent())
    assert list(tmp_path.iterdir()) == []


def test_an_agent_with_actions_that_the_store_does_not_know_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with a_live(an_agent(), path=path) as live:
        known = live.add_actions(1)[0]
    ma.live.open(path, an_agent(), background=False).close()  # as it was before actions were added
    larger = an_agent()
    larger.add_actions(known + 2 - larger.belief.catalogue.size)
    with pytest.raises(InvalidInput, match=f"at most {known + 1}, those of the agent in the store"):
        ma.live.open(path, larger, background=False)


def test_deployments_are_refused_by_the_argument_that_is_wrong() -> None:
    with a_live() as live:
        for argument, options in {
            "shares": {"shares": "b"},
            "shadows": {"shares": "agent", "shadows": ["b"]},
            "holdout_arm": {"shares": "agent", "holdout": 0.1, "holdout_arm": "b"},
        }.items():
            with pytest.raises(LiveError, match=f"{argument}: expected an arm of this store .*, got 'b'"):
                live.deploy(**options)  # type: ignore[arg-type]


def test_propensities_are_plain_numbers() -> None:
    with a_live(ma.policies.UniformPolicy(3)) as live:
        live.retire([2])
        assert type(live.decide(X).propensity) is float


def test_an_export_has_a_name_that_can_be_read_again(tmp_path: Path) -> None:
    with a_live() as live, pytest.raises(InvalidInput, match=r"path: expected a name that ends in \.parquet"):
        ma.live.export(live.database, tmp_path / "log.txt")
    assert list(tmp_path.iterdir()) == []


def test_what_is_asked_of_a_store_is_a_number_or_a_text() -> None:
    with a_live() as live:
        for position in (-1, 1.5, True, float("nan"), np.array([1, 2])):
            with pytest.raises(InvalidInput, match="position: expected an integer of at least 0"):
                live.learning(position)  # type: ignore[arg-type]
        for search in (3, ["a"], b"a", None):
            with pytest.raises(InvalidInput, match="search: expected a text"):
                live.actions(search=search)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_store_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    """Names of files are bytes: a name in Latin-1 is a name."""
    store, copy, other = (tmp_path / os.fsdecode(name) for name in (b"caf\xe9.db", b"copie\xe9.db", b"\xe9.db"))
    with a_live(path=store) as live:
        live.reward(live.decide(X, id="e").id, 1.0)
    ma.live.backup(store, copy)
    ma.live.restore(copy, other)
    with ma.live.open(other, background=False) as live:
        assert live.event("e").id == "e"

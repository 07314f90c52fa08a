"""Calls that are wrong: they are refused by the name of what is wrong with them, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

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

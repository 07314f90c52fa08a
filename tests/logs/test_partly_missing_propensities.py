"""Propensities that are missing in some rows: estimated there and marked, everywhere that a log goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.logs import (
    LoggedData,
    concatenate,
    estimate_propensities,
    from_frame,
    inspect,
    open_log,
    read_csv,
    read_log,
    to_arrow,
    to_csv,
    to_parquet,
)  # fmt: skip
from manyarms.policies import UniformPolicy

N = 200
MISSING = np.arange(N) % 4 == 1  # a quarter


def frame(rng: np.random.Generator | None = None) -> dict[str, Any]:
    rng = np.random.default_rng(3) if rng is None else rng
    actions = rng.integers(3, size=N)
    p = np.where(MISSING, np.nan, 1 / 3)
    return {"x": rng.normal(size=N), "action": actions, "reward": rng.integers(2, size=N), "propensity": p}


def log_of(table: dict[str, Any], **changes: Any) -> LoggedData:
    made = LoggedData(np.column_stack([table["x"]]), table["action"], table["reward"], 3)
    return replace(made, **changes) if changes else made


def test_without_estimation_the_share_and_both_ways_out_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"estimate_missing=True.*drop_missing=True.*row 1 \(25\.0% of the rows"):
        from_frame(frame())
    with pytest.raises(InvalidInput, match=r"known=.*nan at row 1 \(25\.0% of the rounds"):
        log_of(frame(), propensities=frame()["propensity"])
    (tmp_path / "log.csv").write_text("x,action,reward,propensity\n1,0,1,0.5\n2,1,0,\n3,1,0,NA\n")
    with pytest.raises(InvalidInput, match=r"line 3 \(66\.7% of the rows"):
        read_csv(tmp_path / "log.csv")
    found = inspect(frame())
    assert any("25.00%" in one.what and "estimate_missing" in one.advice for one in found.problems)


def test_only_the_missing_ones_are_estimated_by_frequencies() -> None:
    table = frame()
    log = from_frame(table, estimate_missing=True)
    shares = np.bincount(table["action"], minlength=3) / N
    assert log.propensities is not None
    np.testing.assert_allclose(log.propensities, np.where(MISSING, shares[table["action"]], 1 / 3))
    np.testing.assert_array_equal(log.estimated, MISSING)
    assert log.propensities_are_estimates and log.estimated_share == 0.25
    assert any("50 of 200 propensities (25.0%) were missing" in note for note in log.notes)
    complete = from_frame(table | {"propensity": np.full(N, 1 / 3)}, estimate_missing=True)
    assert complete.estimated is None and not complete.propensities_are_estimates
    bare = from_frame({k: v for k, v in table.items() if k != "propensity"}, estimate_missing=True)
    assert bare.estimated_share == 1.0 and bare.propensities is not None
    np.testing.assert_allclose(bare.propensities, shares[table["action"]])
    dropped = from_frame(
        table | {"reward": np.where(np.arange(N) == 0, np.nan, 1.0)}, estimate_missing=True, drop_missing=True
    )
    assert len(dropped) == N - 1


def test_streams_chunks_and_models_agree_with_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = frame()
    columns = {k: pa.array(v, from_pandas=True) for k, v in table.items()}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet", row_group_size=60)
    whole = from_frame(table, estimate_missing=True)
    opened = open_log(tmp_path / "log.parquet", estimate_missing=True)
    parts = concatenate(opened.chunks(7), chunks=True)
    for log in (opened.collect(), parts):
        np.testing.assert_array_equal(log.propensities, whole.propensities)
        np.testing.assert_array_equal(log.estimated, whole.estimated)
        assert log.propensities_are_estimates
    direct = estimate_propensities(open_log(tmp_path / "log.parquet"))
    known = estimate_propensities(log_of(table), known=table["propensity"])
    for found in (direct, known):
        np.testing.assert_allclose(found.log.propensities, whole.propensities)
        np.testing.assert_array_equal(found.log.estimated, whole.estimated)
        assert "where propensities are known" in found.log.notes[-1] and "25.0% of the" in found.log.notes[-1]
    again = open_log(tmp_path / "log.parquet", estimate_missing=known.model).collect()
    np.testing.assert_allclose(again.propensities, whole.propensities)


def test_marks_go_where_rows_go(tmp_path: Path) -> None:
    log = from_frame(frame(), estimate_missing=True)
    some = log.rows(~MISSING)
    assert not some.propensities_are_estimates and some.estimated_share == 0.0
    assert log.rows(MISSING).estimated_share == 1.0
    for part in log.split(0.5):
        np.testing.assert_array_equal(part.estimated, MISSING[part.positions])
    exact = log_of(frame(), propensities=np.full(N, 0.5))
    both = concatenate([exact, replace(exact, propensities_are_estimates=True), log])
    np.testing.assert_array_equal(both.estimated, np.concatenate([np.zeros(N), np.ones(N), MISSING]).astype(bool))
    assert concatenate([exact, exact]).estimated is None
    to_csv(log, tmp_path / "log.csv")
    header = (tmp_path / "log.csv").read_text().splitlines()[0]
    assert "propensity_is_estimate" in header and "propensity_estimate" not in header
    copies = [read_log(tmp_path / "log.csv", action_count=3)]
    text = (tmp_path / "log.csv").read_text().splitlines()
    words = [line[: line.rfind(",") + 1] + ("True" if line.endswith(",1") else "False") for line in text[1:]]
    (tmp_path / "words.csv").write_text("\n".join([text[0], *words]) + "\n")
    copies.append(read_log(tmp_path / "words.csv", action_count=3))
    if pytest.importorskip("pyarrow"):
        to_parquet(log, tmp_path / "log.parquet", rows_per_group=50)
        copies += [read_log(tmp_path / "log.parquet"), from_frame(to_arrow(log))]
    for copy in copies:
        np.testing.assert_array_equal(copy.estimated, MISSING)
        np.testing.assert_array_equal(copy.propensities, log.propensities)
        assert copy.dim == 1  # the marks are no context
    for found in (inspect(log), inspect(tmp_path / "log.csv"), inspect(tmp_path / "words.csv")):
        assert found.estimated_share == 0.25 and any("25.0% of the propensities are" in f.what for f in found.findings)


def test_results_say_how_much_rests_on_estimates() -> None:
    log = from_frame(frame(), estimate_missing=True)
    policy = UniformPolicy(3)
    said = " ".join(ma.evaluate(policy, log).warnings)
    assert log.propensities is not None
    weight = (1 / 3) / log.propensities
    share = weight[MISSING].sum() / weight.sum()
    assert f"{share:.0%} of the weight rests on estimated propensities (50 of 200 rows)" in said
    with pytest.raises(InvalidInput, match="trust_estimates"):
        ma.certify(policy, log)
    trusted = ma.certify(policy, log, trust_estimates=True)
    assert any("estimates in 25.0% of the rows" in note for note in trusted.notes)
    ma.certify(policy, log.rows(~MISSING))


class LateEstimates:
    """Exact at first: what is refused must not depend on the first chunk."""

    def __init__(self, log: LoggedData) -> None:
        self.log, self.action_count, self.dim = log, log.action_count, log.dim

    def chunks(self, rows: int = 0) -> Any:
        yield self.log.rows(~MISSING)
        yield self.log.rows(MISSING)


def test_estimates_after_the_first_chunk_are_refused_too() -> None:
    log = from_frame(frame(), estimate_missing=True)
    with pytest.raises(InvalidInput, match="trust_estimates"):
        ma.certify(UniformPolicy(3), LateEstimates(log))
    said = ma.certify(UniformPolicy(3), LateEstimates(log), trust_estimates=True).notes
    assert any("25.0% of the rows" in note for note in said)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: from_frame(frame(), estimate_missing="yes"), "estimate_missing"),  # type: ignore[arg-type]
        (lambda: from_frame(frame(), estimate_missing=LoggedData), "estimate_missing"),  # type: ignore[arg-type]
        (lambda: estimate_propensities(log_of(frame()), known=np.zeros(N)), "known"),
        (lambda: estimate_propensities(log_of(frame()), known=np.ones(3)), "known"),
        (lambda: estimate_propensities(log_of(frame()), known="all"), "known"),
        (lambda: estimate_propensities(log_of(frame(), propensities=np.ones(N)), known=np.ones(N)), "known"),
        (lambda: log_of(frame(), estimated=MISSING), "estimated"),
        (lambda: log_of(frame(), propensities=np.ones(N), estimated=MISSING[:3]), "estimated"),
        (lambda: log_of(frame(), propensities=np.ones(N), estimated=np.full(N, 2)), "estimated"),
        (lambda: log_of(frame(), propensities=np.ones(N), estimated=["no"] * N), "estimated"),
    ],
)
def test_nonsense_is_refused(call: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        call()

"""Inspection: its numbers against direct formulas, its findings on logs with known faults, its page and its command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from manyarms._base.moments import RunningMoments
from manyarms.cli.app import app
from manyarms.errors import DataError, InvalidInput
from manyarms.logs import Actions, Columns, LoggedData, inspection, open_log, to_csv, to_parquet
from manyarms.logs.inspection import inspect
from manyarms.logs.inspection.sketches import Duplicates, Sample, hashes_of
from manyarms.logs.tables import column_of, number_column


def logged(rows: int = 2000, K: int = 6, seed: int = 0, **changes: Any) -> LoggedData:
    """A softmax logger that never plays the last action."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    P = np.exp(X @ rng.normal(size=(2, K - 1)))
    P /= P.sum(axis=1, keepdims=True)
    a = (P.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    fields: dict[str, Any] = {
        "contexts": X, "actions": a, "rewards": (rng.random(rows) < 0.2 + 0.1 * a).astype(float), "action_count": K,
        "propensities": P[np.arange(rows), a], "event_ids": np.array([f"e{i}" for i in range(rows)]),
        "timestamps": np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1, "s"),
        "groups": np.arange(rows) % 37,
    }  # fmt: skip
    return LoggedData(**(fields | changes))


def levels(found: inspection.Inspection) -> dict[str, str]:
    return {finding.what: finding.level for finding in found.findings}


def test_numbers_are_the_direct_formulas() -> None:
    log = logged()
    found = inspect(log, rows_per_chunk=300)
    p, r, a = log.propensities, log.rewards, log.actions
    assert p is not None and found.overlap is not None and found.propensities is not None
    w = 1 / (6 * p)
    assert found.overlap.effective_sample_size == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert found.overlap.mean_weight == pytest.approx(w.mean())
    assert found.overlap.mean_weight_error == pytest.approx(w.std() / np.sqrt(len(w)))
    assert found.overlap.largest_weight == pytest.approx(w.max())
    assert found.overlap.below[0.01] == pytest.approx((p < 0.01).mean())
    values = [((a == k) * r / p).sum() / ((a == k) / p).sum() for k in range(5)]
    best = int(np.argmax(values))
    v = (a == best) / p
    assert found.overlap.best is not None and found.overlap.best.name == str(best)
    assert found.overlap.best.value == pytest.approx(values[best])
    assert found.overlap.best.effective_sample_size == pytest.approx(v.sum() ** 2 / (v**2).sum())
    assert found.rewards.mean == pytest.approx(r.mean())
    assert found.rewards.values == {0.0: int((r == 0).sum()), 1.0: int((r == 1).sum())}
    assert found.propensities.standard_deviation == pytest.approx(p.std())
    for q, value in found.propensities.quantiles.items():
        assert value == pytest.approx(np.quantile(p, q))
    assert sum(found.propensities.histogram.counts) == 2000
    assert (found.action_count, found.actions_seen, found.unseen) == (6, 5, ("5",))
    shares = np.bincount(a)[:5] / 2000
    assert found.effective_actions == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    assert [row.rows for row in found.most_played] == sorted(np.bincount(a)[:5], reverse=True)
    assert (found.groups, found.out_of_order) == (37, 0)
    assert found.duplicate_events is not None and found.duplicate_events.count == found.duplicate_rows.count == 0


def test_a_sound_log_has_no_problem_and_the_mean_weight_tells_the_support() -> None:
    """E[1 / (K p)] is the share of actions that can be played: 5 of 6 here, and 1 for a full logger."""
    found = inspect(logged(20_000))
    assert not found.problems
    assert found.overlap is not None
    assert abs(found.overlap.mean_weight - 5 / 6) < 4 * found.overlap.mean_weight_error
    assert any("never played, which explains a mean near 0.833" in finding.advice for finding in found.findings)
    whole = inspect(logged(20_000, action_count=5))
    assert whole.overlap is not None
    assert abs(whole.overlap.mean_weight - 1) < 4 * whole.overlap.mean_weight_error
    assert not any("average" in finding.what for finding in whole.findings)


@pytest.mark.parametrize("end", [".parquet", ".csv", ".csv.gz"])
def test_a_file_is_what_its_log_is(tmp_path: Path, end: str) -> None:
    if end == ".parquet":
        pytest.importorskip("pyarrow")
    log = logged(catalogue=Actions(list("abcdef")))
    path = tmp_path / f"log{end}"
    (to_parquet if end == ".parquet" else to_csv)(log, path)
    found, direct = inspect(path, action_count=6), inspect(log)
    assert found.overlap is not None and direct.overlap is not None
    assert found.overlap.effective_sample_size == pytest.approx(direct.overlap.effective_sample_size)
    assert {row.name: row.rows for row in found.most_played} == {row.name: row.rows for row in direct.most_played}
    assert found.rewards.values == direct.rewards.values
    assert (found.first_time, found.last_time) == (direct.first_time, direct.last_time)
    if end == ".parquet":
        assert found.unseen == direct.unseen == ("f",)
        assert inspect(open_log(path)).actions_seen == 5


CSV = """x,town,action,reward,propensity,event_id,timestamp
1.0,Ulm,0,1,0.5,a,2024-01-02
,Ulm,1,0,0.5,b,2024-01-01
1.0,,1,,0.5,b,2024-01-03
2.0,Ulm,-3,0,0,c,2024-01-04
2.0,Ulm,1,oops,1.5,,2024-01-05
2.0,Ulm,1,1,,d,2024-01-05
"""


def test_a_log_that_would_be_refused_is_inspected_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(CSV)
    found = inspect(tmp_path / "bad.csv", Columns(context=["x", "town"]), action_count=4)
    said = levels(found)

    def level(*words: str) -> str:
        hits = [level for what, level in said.items() if all(word in what for word in words)]
        assert len(hits) == 1, (words, list(said))
        return hits[0]

    assert level("1 missing entry", "'reward'", "line 4") == "problem"
    assert level("1 missing entry", "'propensity'", "line 7") == "problem"
    assert level("1 missing entry", "'x'", "line 3") == "warning"
    assert level("'town'", "line 4") == "warning"
    assert level("actions that are not rows", "line 5 (-3)") == "problem"
    assert level("rewards that are not finite numbers", "line 6 (oops)") == "problem"
    assert level("propensities outside (0, 1]", "2 rows", "line 5") == "problem"
    assert level("1 event ids are repeated", "line 4") == "problem"
    assert level("timestamps are out of order", "1 row", "line 3") == "note"
    assert found.missing and found.rows == 6
    assert all(finding.advice for finding in found.findings)
    assert [f.level for f in found.findings] == sorted(
        (f.level for f in found.findings), key="problem warning note".index
    )


def test_repeats_are_found(rng: np.random.Generator) -> None:
    log = logged(500)
    twice = log.rows(np.r_[np.arange(500), [3, 7, 7]])
    found = inspect(twice, rows_per_chunk=64)
    assert found.duplicate_events is not None
    assert (found.duplicate_events.count, found.duplicate_events.first_row) == (3, 500)
    assert (found.duplicate_rows.count, found.duplicate_rows.first_row, found.duplicate_rows.exact) == (3, 500, True)
    assert {"problem", "warning"} <= {f.level for f in found.findings if "again" in f.what or "repeat" in f.what}


@pytest.mark.parametrize(
    ("changes", "words", "level"),
    [
        ({"actions": np.zeros(300, dtype=int)}, "only one action", "problem"),
        ({"rewards": np.ones(300)}, "every reward is 1", "problem"),
        ({"rewards": np.linspace(-1, 3, 300)}, "rewards go from -1 to 3", "note"),
        ({"rewards": (np.arange(300) < 9).astype(float)}, "only 9 rows have the reward 1", "warning"),
        ({"propensities": None}, "no propensities", "warning"),
        ({"propensities_are_estimates": True}, "are estimates", "warning"),
        ({"propensities": np.ones(300)}, "with probability 1", "problem"),
        ({"propensities": np.full(300, 0.05)}, "average 3.333 ± 0.000, above 1", "warning"),
        ({"propensities": np.r_[np.full(299, 0.5), 1e-4]}, "0.33% of the rows have a propensity below", "warning"),
        ({"actions": np.arange(300) * 50 % 400, "action_count": 1000}, "were never played", "warning"),
        ({"contexts": np.column_stack([np.ones((300, 2)), np.arange(300)])}, "2 entries of the vectors", "note"),
        ({"support": np.tile([0, 1], (300, 1))}, "not in their row's support", "warning"),
    ],
)
def test_each_fault_is_named(changes: dict[str, Any], words: str, level: str) -> None:
    found = inspect(logged(300, **changes))
    hits = [finding for finding in found.findings if words in finding.what]
    assert [finding.level for finding in hits] == [level], levels(found)


def test_a_support_that_contradicts_the_propensity_is_named() -> None:
    log = logged(100)
    a = log.actions
    p = np.asarray(log.propensities)
    chances = np.column_stack([p, (1 - p) / 2])
    right = logged(100, support=np.column_stack([a, (a + 1) % 6]), support_probabilities=chances)
    assert not any("differ from the support" in what for what in levels(inspect(right)))
    chances[17, 0] *= 0.9
    wrong = logged(100, support=np.column_stack([a, (a + 1) % 6]), support_probabilities=chances)
    assert any("differ from the support's probability: 1 row, the first at row 17" in w for w in levels(inspect(wrong)))


def test_ids_that_look_like_rows_and_columns_that_look_like_ids() -> None:
    frame = {
        "x": [f"user-{i}" for i in range(500)],
        "action": [5000 + i % 3 * 999 for i in range(500)],
        "reward": [0, 1] * 250,
    }
    said = levels(inspect(frame, Columns(context=["x"])))
    assert any("only 3 different ones were played" in what for what in said)
    assert any("500 different texts in 'x'" in what for what in said)
    assert any("does not say how many actions" in what for what in said)


def test_a_frame_and_dsjson_are_inspected(tmp_path: Path) -> None:
    line = {
        "_label_cost": -1, "_label_probability": 0.5, "_labelIndex": 0, "a": [1, 2], "p": [0.5, 0.5],
        "c": {"u": {"age": 3}, "_multi": [{"_tag": "a"}, {"_tag": "b"}]},
    }  # fmt: skip
    (tmp_path / "l.dsjson").write_text(json.dumps(line) + "\n" + json.dumps(line) + "\n")
    found = inspect(tmp_path / "l.dsjson")
    assert (found.rows, found.actions_seen, found.unseen) == (2, 1, ("b",))
    with pytest.raises(InvalidInput, match="no row"):
        inspect({"x": [], "action": [], "reward": []}, Columns(context=["x"]))
    with pytest.raises(InvalidInput, match="source: expected a file that ends in"):
        (tmp_path / "l.txt").write_text("x")
        inspect(tmp_path / "l.txt")
    with pytest.raises(DataError, match="no such file"):
        inspect(tmp_path / "absent.csv")


# ---- the sketches


def test_moments_and_samples_do_not_depend_on_chunks(rng: np.random.Generator) -> None:
    values = rng.lognormal(size=5000)
    moments, sample = RunningMoments(), Sample(size=400)
    for part in np.array_split(values, 23):
        moments.add(part)
        sample.see(part)
    assert moments.mean == pytest.approx(values.mean(), rel=1e-12)
    assert moments.deviation == pytest.approx(values.std(), rel=1e-12)
    kept = sample.values()
    assert len(kept) == 400 and not sample.complete
    assert len(np.unique(kept)) == 400 and np.isin(kept, values).all()
    # a uniform sample: the share below the median is binomial
    assert abs((kept < np.median(values)).mean() - 0.5) < 4 * 0.5 / np.sqrt(400)


def test_repeats_are_exact_in_a_small_stream_and_unbiased_in_a_long_one(rng: np.random.Generator) -> None:
    values = rng.integers(30_000, size=60_000)
    hashes = hashes_of([number_column(values)], len(values))
    distinct = len(np.unique(values))
    exact, thinned = Duplicates(), Duplicates(budget=4000)
    for start in range(0, 60_000, 7000):
        for counter in (exact, thinned):
            counter.see(hashes[start : start + 7000], np.arange(start, min(start + 7000, 60_000)))
    assert (exact.count, exact.distinct, exact.exact) == (60_000 - distinct, distinct, True)
    before: set[int] = set()
    first = next(i for i, v in enumerate(values.tolist()) if v in before or before.add(v))  # type: ignore[func-returns-value]
    assert exact.first_row == first
    assert not thinned.exact and thinned.thinning >= 8
    assert thinned.count == pytest.approx(60_000 - distinct, rel=0.1)
    assert thinned.distinct == pytest.approx(distinct, rel=0.1)


def test_hashes_do_not_depend_on_chunks_and_tell_rows_apart(rng: np.random.Generator) -> None:
    texts = np.array(["a", "ab", "ba", "", "a much longer text", "a"])
    long = hashes_of([column_of("t", texts)], 6)
    short = np.concatenate([hashes_of([column_of("t", texts[i : i + 1])], 1) for i in range(6)])
    np.testing.assert_array_equal(long, short)
    assert len(set(long.tolist())) == 5
    X = rng.integers(2, size=(4096, 12)).astype(float)
    assert len(np.unique(hashes_of([number_column(X)], 4096))) == len(np.unique(X, axis=0))
    swapped = hashes_of([number_column(X[:, 0]), number_column(X[:, 1])], 4096)
    other = hashes_of([number_column(X[:, 1]), number_column(X[:, 0])], 4096)
    assert (swapped[X[:, 0] != X[:, 1]] != other[X[:, 0] != X[:, 1]]).all()


# ---- the page and the command


def test_the_page_is_whole_and_escaped(tmp_path: Path) -> None:
    log = logged(200, catalogue=Actions(["<b>", "&", "c", "d", "e", "f"]), notes=("a <note>",))
    inspection.write_page(inspect(log), tmp_path / "deep" / "page.html")
    text = (tmp_path / "deep" / "page.html").read_text()
    for word in (
        "Findings",
        "Rewards",
        "Propensities",
        "Overlap",
        "effective sample size",
        "&lt;b&gt;",
        "a &lt;note&gt;",
    ):
        assert word in text
    assert "<b>" not in text and "<script" not in text


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(CSV)
    page = tmp_path / "out.html"
    run = CliRunner()
    command = ["inspect", str(tmp_path / "bad.csv"), "--context", "x", "--actions", "4", "--out", str(page)]
    result = run.invoke(app, command, env={"COLUMNS": "150"})
    assert result.exit_code == 0, result.output
    for word in ("problem", "effective sample size", "oops", "correct or drop these rows", str(page.name)):
        assert word in result.output
    assert page.is_file()
    assert run.invoke(app, [*command, "--strict"]).exit_code == 1
    help_text = run.invoke(app, ["inspect", "--help"], env={"COLUMNS": "150"}).output
    for word in ("--propensity", "--strict", "manyarms inspect rounds.parquet"):
        assert word in help_text
    to_csv(logged(50, K=3), tmp_path / "good.csv")
    sound = run.invoke(app, ["inspect", str(tmp_path / "good.csv"), "--out", str(page), "--strict"])
    assert sound.exit_code == 0, sound.output
    assert isinstance(run.invoke(app, ["inspect", str(tmp_path / "none.csv"), "--out", str(page)]).exception, DataError)


def test_rounds_that_look_alike_are_no_copies_where_event_ids_differ() -> None:
    columns = {
        "x": [1.0, 1.0, 2.0], "action": [0, 0, 1], "reward": [1.0, 1.0, 0.0], "propensity": [0.5, 0.5, 0.5],
        "timestamp": ["2024-01-01"] * 3,
    }  # fmt: skip
    alone = inspect(columns)
    apart = inspect({**columns, "event_id": ["a", "b", "c"]})
    assert [f.level for f in alone.findings if "repeat an earlier one entirely" in f.what] == ["warning"]
    assert [f.level for f in apart.findings if "repeat an earlier one but for the event id" in f.what] == ["note"]


def test_numbers_and_texts_in_one_context_column_are_a_problem(tmp_path: Path) -> None:
    rows = "\n".join(f"{'old' if i == 4 else i},{i % 2},{i % 3},0.5" for i in range(9))
    (tmp_path / "log.csv").write_text("context_age,action,reward,propensity\n" + rows + "\n")
    (problem,) = inspect(tmp_path / "log.csv").problems
    assert "'context_age'" in problem.what and "'old' at line 6" in problem.what


def test_a_text_among_rewards_counts_once(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{i % 2},{'good' if i == 4 else i % 3},0.5" for i in range(9))
    (tmp_path / "log.csv").write_text("context_age,action,reward,propensity\n" + rows + "\n")
    (problem,) = inspect(tmp_path / "log.csv").problems
    assert "1 row, the first at line 6 (good)" in problem.what

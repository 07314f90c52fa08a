"""A log is read once, whatever its source, and what is asked of it gives the same numbers as from memory."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manyarms.bounds import Grid
from manyarms.certificates import PolicyPrior, certify, certify_with_improvement, improvement, summarise
from manyarms.certificates.reading import row_count
from manyarms.errors import InvalidInput
from manyarms.logs import open_log, to_csv, to_parquet
from manyarms.logs.formats.csv import CsvTables
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.weights import ClipPropensities, LogSmoothing


class Counted:
    """A source that counts how often it is read; it says how many rows it has only if it is told to."""

    def __init__(self, log, rows=None):
        self._log, self.row_count, self.readings = log, rows, 0

    @property
    def action_count(self):
        return self._log.action_count

    @property
    def dim(self):
        return self._log.dim

    def chunks(self, rows=100):
        self.readings += 1
        return self._log.chunks(min(rows, 100))


@pytest.fixture
def log(world, rng):
    return world.log(730, rng)


@pytest.fixture
def prior(world):
    return PolicyPrior(world.start, 1.0)


def same(one, other):
    assert [ends.label for ends in one.candidates] == [ends.label for ends in other.candidates]
    for mine, theirs in zip(one.candidates, other.candidates, strict=True):
        assert (mine.lower, mine.upper) == (
            pytest.approx(theirs.lower, abs=1e-12),
            pytest.approx(theirs.upper, abs=1e-12),
        )
    assert (one.rows, one.grid, one.logged) == (other.rows, other.grid, pytest.approx(other.logged))


@pytest.mark.parametrize("known", [True, False], ids=["rows are known", "rows are not known"])
def test_one_reading_for_a_certificate_and_an_improvement(log, learned, prior, known):
    """With propensities alone the grid may wait until the rows are counted."""
    source = Counted(log, len(log) if known else None)
    bound = ("ls", "london", "sakhi-1", "ix-tail")
    made, gain = certify_with_improvement(learned, source, prior=prior, bound=bound)
    assert source.readings == 1
    same(made, certify(learned, log, prior=prior, bound=bound))
    whole = improvement(learned, log, prior=prior)
    assert (gain.lower, gain.estimate) == (pytest.approx(whole.lower, abs=1e-12), pytest.approx(whole.estimate))
    assert (gain.smoothing, gain.rows_needed) == (whole.smoothing, whole.rows_needed)


def test_sums_over_actions_of_a_source_that_does_not_know_its_rows(log, learned, prior):
    """Their grid needs the number of rows before: a reading that counts; none where the grid is given, or the rows known."""
    for grid, rows, readings in ((None, None, 2), (Grid(lambdas=(0.1,)), None, 1), (None, 730, 1)):
        source = Counted(log, rows)
        made = certify(learned, source, prior=prior, bound="es", grid=grid)
        assert source.readings == readings
        same(made, certify(learned, log, prior=prior, bound="es", grid=grid))


def test_draws_of_all_parameters_share_the_reading(world, log, prior):
    source = Counted(log, len(log))
    policy = MixedLogitPolicy(world.start, 0.5)
    made = certify(policy, source, prior=prior, bound=("harmonic", "ls"), draws=64)
    assert source.readings == 1
    same(made, certify(policy, log, prior=prior, bound=("harmonic", "ls"), draws=64))


def test_shared_rows_are_seen_on_the_way(world, log, learned):
    moved = np.linspace(0, 1, 730)[:, None] * 1e-9 + log.contexts  # no two rounds look alike
    first, rest = Counted(_with(log, moved, slice(0, 200))), Counted(_with(log, moved, slice(200, 730)))
    certify(learned, rest, prior=PolicyPrior(world.start, learned_from=first), bound="ls")
    assert first.readings == rest.readings == 1
    whole = Counted(_with(log, moved, slice(100, 730)))
    with pytest.raises(InvalidInput, match=r"shares rows .*15.9% of its rows"):
        certify(learned, whole, prior=PolicyPrior(world.start, learned_from=first), bound="ls")
    assert whole.readings == 1


def _with(log, contexts, rows):
    return replace(log, contexts=contexts, logging=None).rows(rows)


def test_row_counts(log, tmp_path):
    to_parquet(log, tmp_path / "log.parquet")
    to_csv(log, tmp_path / "log.csv")
    assert row_count(log) == 730 and row_count(open_log(tmp_path / "log.parquet")) == 730
    assert row_count(open_log(tmp_path / "log.csv")) == 730  # counted when it was opened
    assert row_count(open_log(tmp_path / "log.parquet", drop_missing=True)) is None


def test_the_command_parses_a_file_once(world, log, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from manyarms.cli import app as cli

    SoftmaxPolicy(world.start * 0.5).save(tmp_path / "policy")
    to_csv(log, tmp_path / "log.csv")
    read = []
    tables = CsvTables.tables
    monkeypatch.setattr(CsvTables, "tables", lambda self, *some: (read.append(self), tables(self, *some))[1])
    arguments = ["certify", tmp_path / "policy", tmp_path / "log.csv", "--out", tmp_path / "out"]
    result = CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    assert len(read) == 1
    data = json.loads((tmp_path / "out" / "certificate.json").read_text())
    wanted = certify(SoftmaxPolicy(world.start * 0.5), _with(log, log.contexts, slice(0, 730)))
    assert data["lower"] == pytest.approx(wanted.lower, abs=1e-9) and data["rows"] == 730


def test_chunks_of_any_size_give_the_same_summary(log, learned):
    statistics = [ClipPropensities(0.1), LogSmoothing(0.05)]
    small, large = (summarise(learned, log, statistics, chunk=chunk) for chunk in (7, 10_000))
    for one in statistics:
        for field, value in vars(large.of(one)).items():
            assert getattr(small.of(one), field) == (
                None if value is None else pytest.approx(value, rel=1e-9, abs=1e-15)
            )


def test_few_files_stand_between_the_call_and_the_arithmetic(log, learned, prior, monkeypatch):
    """ARCHITECTURE's promise: at most eight of our files on the stack when a bound is computed."""
    from manyarms.bounds import concentration

    depths = []
    plain = concentration.over_contexts

    def watched(*arguments):
        frame, files = sys._getframe(), set()
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if "manyarms" in path.parts:
                files.add(path)
            frame = frame.f_back
        depths.append(len(files))
        return plain(*arguments)

    monkeypatch.setattr("manyarms.bounds.unified.over_contexts", watched)
    certify(learned, log, prior=prior, bound="es")
    assert depths and max(depths) <= 8

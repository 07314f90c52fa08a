"""Learning from logs larger than memory: what is learned, in which order, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import DataError, InvalidInput
from manyarms.estimators import (
    BPR,
    DM,
    DR,
    ES,
    ESLPI,
    IPS,
    LPI,
    LS,
    MIPS,
    OBJECTIVES,
    PC,
    PWLL,
    SNDR,
    SNIPS,
    Distance,
    Heuristic,
    OffCEM,
    PACBayes,
    RegKL,
    RegKLLinear,
    SampleVariance,
    SwitchDR,
    cLPI,
)
from manyarms.estimators.naming import summaries
from manyarms.learning import SampledSoftmax, learn, steps
from manyarms.learning.survey import survey
from manyarms.logs import LoggedData, to_parquet
from manyarms.logs.row_groups import RowGroups
from manyarms.policies import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.weights import CORRECTIONS

ROWS, ACTIONS, DIM = 600, 12, 3
HOW = {"batch": 32, "epochs": 2, "device": "cpu", "learning_rate": 0.05, "buffer": 200}
LOGGING = SoftmaxPolicy(np.random.default_rng(5).normal(size=(ACTIONS, DIM)))
START = SoftmaxPolicy(np.random.default_rng(6).normal(size=(ACTIONS, DIM)) * 0.1)
LABELS = np.arange(ACTIONS) % 4


def a_log(rows: int = ROWS, *, listed: bool = True) -> LoggedData:
    """Rounds of a softmax policy, which lists what it might have played."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, DIM))
    actions = LOGGING.sample_rows(X, rng)
    rewards = (rng.random(rows) < np.where(actions % 3 == 0, 0.7, 0.2)).astype(float)
    support = np.argsort(rng.random((rows, ACTIONS)), axis=1) if listed else None
    likely = None if support is None else LOGGING.probabilities_of_many(X, support)
    own = LOGGING.probabilities_of(X, actions)
    return LoggedData(X, actions, rewards, ACTIONS, own, support=support, support_probabilities=likely)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The log in two files, in row groups of 70 and of 130 rows."""
    path, log = tmp_path / "rounds", a_log()
    path.mkdir()
    to_parquet(log.rows(slice(0, 350)), path / "a.parquet", rows_per_group=70)
    to_parquet(log.rows(slice(350, None)), path / "b.parquet", rows_per_group=130)
    return path


def same(one, other) -> None:
    np.testing.assert_array_equal(one.policy.actions, other.policy.actions)
    assert [line.objective for line in one.history] == [line.objective for line in other.history]


def no_reader() -> bool:
    return not any(thread.name == "manyarms-windows" for thread in threading.enumerate())


# ---- what is learned


def test_a_log_that_fits_is_learned_from_as_in_memory(folder: Path) -> None:
    how = HOW | {"buffer": ROWS}
    same(learn(ma.open_log(folder), START, cLPI(), **how), learn(a_log(), START, cLPI(), **(how | {"buffer": None})))


def test_the_order_is_the_documented_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups by (seed, epoch), windows by the buffer, rows by (seed, epoch, window): written out from the file's sizes."""
    sizes, starts = np.array([70] * 5 + [130, 120]), np.r_[0:350:70, 350, 480]
    seen: dict[int, list[int]] = {}
    take = steps.Steps.take
    where = {tuple(x): row for row, x in enumerate(a_log().contexts)}

    def watched(self, window, batches, epoch, *more):
        rows = [where[tuple(window.log.contexts[i])] for index, _ in batches for i in index]
        seen.setdefault(epoch, []).extend(rows)
        return take(self, window, batches, epoch, *more)

    monkeypatch.setattr(steps.Steps, "take", watched)
    learn(ma.open_log(folder), START, RegKL(), **HOW, seed=4)
    for epoch in range(2):
        groups = np.random.default_rng([4, epoch, 0, 1]).permutation(7)
        sequence = np.concatenate([np.arange(starts[g], starts[g] + sizes[g]) for g in groups])
        ends, expected, first, window = np.cumsum(sizes[groups]), [], 0, 0
        while first < ROWS:
            last = first + 200
            if last >= ROWS:
                last = ROWS
            else:
                whole = max([end for end in ends if end <= last], default=0)
                last = (whole if whole - first >= 100 else last) // 32 * 32
            order = np.random.default_rng([4, epoch, window, 2]).permutation(last - first)
            expected.extend(sequence[first:last][order])
            first, window = last, window + 1
        assert seen[epoch] == expected
        assert sorted(expected) == list(range(ROWS))


@pytest.mark.parametrize(
    ("policy", "objective", "more"),
    [
        (START, cLPI(), {}),
        (START, BPR(2, "logging"), {}),
        (START, LPI(), {"sampler": SampledSoftmax(5)}),
        (START, PC(START.actions, k=3), {}),
        (GaussianPolicy(START.actions), PACBayes(ES(0.8)), {"draws": 8, "certified": False}),
        (SupportSoftmaxPolicy(START.actions, TopSoftmaxPolicy(START.actions, ACTIONS)), LPI(), {}),
    ],
    ids=["clpi", "bpr", "sampled", "pc", "pac-bayes", "listed"],
)
def test_a_run_is_the_same_every_time_and_after_an_interruption(folder, tmp_path, policy, objective, more) -> None:
    how = HOW | more
    whole = learn(ma.open_log(folder), policy, objective, **how)
    batches = 0

    def interrupt(moment) -> None:
        nonlocal batches
        batches += 1
        if batches == 28:  # in the second epoch of 19 batches, in the middle of a window
            raise KeyboardInterrupt

    kept = how | {"folder": tmp_path / "kept", "checkpoint_seconds": 0.0}
    with pytest.raises(KeyboardInterrupt):
        learn(ma.open_log(folder), policy, objective, progress=interrupt, **kept)
    assert no_reader()
    seen = []
    same(learn(ma.open_log(folder), policy, objective, progress=seen.append, **kept), whole)
    assert (seen[0].epoch, seen[0].batch) == (1, 8)
    same(learn(ma.open_log(folder), policy, objective, **how), whole)
    assert no_reader()


KILLED = """
import signal, sys
import numpy as np
import manyarms as ma
from manyarms.estimators import cLPI
from manyarms.policies import SoftmaxPolicy

rounds, kept = sys.argv[1:]
def wait(moment):
    if (moment.epoch, moment.batch) == (1, 9):
        print("here", flush=True)
        signal.pause()
start = SoftmaxPolicy(np.load(kept + ".npy"))
ma.learn(ma.open_log(rounds), start, cLPI(), batch=32, epochs=2, device="cpu", learning_rate=0.05, buffer=200,
         folder=kept, checkpoint_seconds=0.0, progress=wait)
"""


def test_a_run_that_is_killed_ends_with_the_same_bits(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    np.save(f"{kept}.npy", START.actions)
    command = [sys.executable, "-c", KILLED, str(folder), str(kept)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().strip() == "here"
        os.kill(child.pid, signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    seen = []
    how = HOW | {"folder": kept, "progress": seen.append}
    again = learn(ma.open_log(folder), START, cLPI(), **how)
    assert (seen[0].epoch, seen[0].batch) == (1, 9)
    same(again, learn(ma.open_log(folder), START, cLPI(), **HOW))


def test_another_log_buffer_or_start_does_not_take_over_a_folder(folder: Path, tmp_path: Path) -> None:
    kept = {"folder": tmp_path / "kept", "epochs": 1}
    learn(ma.open_log(folder), START, cLPI(), **(HOW | kept))
    others = [
        (ma.open_log(folder), START, cLPI(), {"buffer": 300}),
        (RowGroups(ma.open_log(folder), range(1, 7)), START, cLPI(), {}),
        (ma.open_log(folder), SoftmaxPolicy(START.actions + 1), cLPI(), {}),
        (ma.open_log(folder), START, cLPI(0.2), {}),
    ]
    for log, policy, objective, more in others:
        with pytest.raises(InvalidInput, match="another log, policy, objective or setting"):
            learn(log, policy, objective, **(HOW | kept | more))
    learn(ma.open_log(folder), START, cLPI(), **(HOW | kept))


# ---- what must be known of all rows


def test_what_is_left_open_is_chosen_as_in_memory(folder: Path) -> None:
    how = {"batch": 32, "device": "cpu"}
    streamed = learn(ma.open_log(folder), START, cLPI(), buffer=200, epochs=2, **how)
    memory = learn(a_log(), START, cLPI(), epochs=2, **how)
    assert streamed.settings["learning_rate"] == pytest.approx(memory.settings["learning_rate"], rel=1e-12)
    assert streamed.settings["schedule"] == memory.settings["schedule"] == "linear"
    assert learn(ma.open_log(folder), START, cLPI(), buffer=500, **(how | {"batch": 250})).settings["epochs"] == 100


def test_the_policy_knows_the_rows_and_the_schema_that_it_was_learned_from(folder: Path) -> None:
    policy = learn(ma.open_log(folder), START, cLPI(), **HOW).policy
    assert policy.training_rows.rows == ROWS
    with pytest.raises(InvalidInput, match="shares rows"):
        ma.certify(policy, a_log(), bound="ls")


def test_a_certificate_is_read_from_the_files(folder: Path) -> None:
    prior = GaussianPolicy(START.actions)
    streamed = learn(ma.open_log(folder), prior, PACBayes(LS(0.1)), **HOW)
    again = ma.certify(
        streamed.policy, a_log(), prior=ma.certificates.PolicyPrior.of(prior), delta=0.05, trust_estimates=True
    )
    assert streamed.certificate.lower == pytest.approx(again.lower, rel=1e-9)
    seen = SoftmaxPolicy(START.actions)
    seen.training_rows = streamed.policy.training_rows
    known = GaussianPolicy(START.actions)
    known.training_rows = streamed.policy.training_rows
    with pytest.raises(InvalidInput, match="shares rows"):
        learn(ma.open_log(folder), known, PACBayes(LS(0.1)), **HOW)


def test_validation_by_row_groups_and_by_logs(folder: Path) -> None:
    source = ma.open_log(folder)
    held = learn(source, START, cLPI(), validation=0.2, **HOW)
    train, other = RowGroups(source).split(0.2, seed=0)
    given = learn(train, START, cLPI(), validation=other, **HOW)
    same(held, given)
    assert [line.validation for line in held.history] == [line.validation for line in given.history]
    assert held.policy.training_rows.rows == sum(train.row_groups)
    stopped = learn(source, START, cLPI(), validation=0.2, patience=1, **HOW)
    assert stopped.policy.training_rows.rows == ROWS  # those that chose the epoch among them
    memory = learn(source, START, cLPI(), validation=ma.logs.collect(other), **HOW)
    assert memory.history[0].validation is not None


def test_rows_in_groups_are_not_cut_apart(tmp_path: Path) -> None:
    log = a_log(listed=False)
    log = LoggedData(log.contexts, log.actions, log.rewards, ACTIONS, log.propensities, groups=np.arange(ROWS) // 3)
    to_parquet(log, tmp_path / "rounds.parquet", rows_per_group=100)
    source = ma.open_log(tmp_path / "rounds.parquet")
    with pytest.raises(InvalidInput, match="groups"):
        learn(source, START, cLPI(), validation=0.2, **HOW)
    with pytest.raises(InvalidInput, match="independent rows"):
        learn(source, GaussianPolicy(START.actions), PACBayes(LS(0.1)), **HOW)


# ---- objectives


class Linear:
    """A reward model of given weights."""

    action_count, dim = ACTIONS, DIM
    weights = np.random.default_rng(3).normal(size=(ACTIONS, DIM))

    def predict(self, X, actions):
        return np.einsum("nd,nd->n", X, self.weights[actions])

    def block(self, X, ids):
        return X @ self.weights[ids].T


MODEL = Linear()
MADE = {
    "lpi": LPI(), "clpi": cLPI(0.1), "es-lpi": ESLPI(0.5), "regkl": RegKL(), "regkl-lin": RegKLLinear(), "bpr": BPR(2, "logging"),
    "dm": DM(MODEL), "dr": DR(MODEL, 0.1), "sndr": SNDR(MODEL), "switch-dr": SwitchDR(MODEL), "mips": MIPS(LABELS),
    "offcem": OffCEM(LABELS, MODEL), "pc": PC(START.actions, k=3), "snips": SNIPS(),
} | {name: IPS(name) for name in CORRECTIONS}  # fmt: skip
AROUND = {
    "pac-bayes": PACBayes(ES(0.8)), "heuristic": Heuristic(ES(0.8)), "variance": SampleVariance(IPS()),
    "distance": Distance(LPI(), 2.0), "pwll": PWLL(lambda r, p: r / p),
}  # fmt: skip


def test_every_objective_is_looked_at() -> None:
    """A new objective must say whether it can be streamed, and be shown to be right here."""
    learnable = {
        name for name, kind in OBJECTIVES.items() if kind.learnable and kind.__module__.startswith("manyarms.")
    }
    assert {MADE[name].name for name in MADE} >= learnable
    assert set(summaries(learnable=True)) & set(CORRECTIONS) <= set(MADE)


@pytest.mark.parametrize("name", [*MADE, *AROUND])
def test_what_is_made_of_a_part_is_what_is_made_of_its_rows_in_the_log(name: str) -> None:
    """By blocks of rows, whose products BLAS may round another way: equal to 1e-12."""
    log, objective = a_log(), (MADE | AROUND)[name].resolved(ROWS)
    index = np.arange(100, 500)
    whole = objective.prepare(log).computed(ROWS)
    part = objective.prepare_part(log.rows(index), ROWS).computed(len(index))
    assert part.columns.keys() == whole.columns.keys()
    active = np.ones(ROWS, dtype=bool) if whole.active is None else whole.active
    np.testing.assert_array_equal(np.ones(400, dtype=bool) if part.active is None else part.active, active[index])
    for key, column in whole.columns.items():
        np.testing.assert_allclose(part.columns[key], column[index], rtol=1e-12, atol=1e-14)
    for key in ("wanted", "ids"):
        mine, theirs = getattr(part, key), getattr(whole, key)
        if callable(theirs):
            np.testing.assert_array_equal(mine(np.arange(400)), theirs(index))
        elif theirs is not None:
            np.testing.assert_array_equal(mine, theirs[index])
    for key in (
        "logged",
        "labels",
        "model",
        "raw_scores",
        "all_actions",
        "divergence",
        "squared_distance",
        "negatives",
    ):
        assert getattr(part, key) is getattr(whole, key) or getattr(part, key) == getattr(whole, key)
    if whole.draw is not None:
        drawn = whole.drawn(index, ACTIONS, np.random.default_rng(0))
        np.testing.assert_array_equal(part.drawn(np.arange(400), ACTIONS, np.random.default_rng(0)), drawn)


@pytest.mark.parametrize(
    "name", ["dr", "mips", "snips", "ips", "variance", "distance", "heuristic", "switch-dr", "cips"]
)
def test_objectives_are_learned_from_streams(name: str, folder: Path) -> None:
    objective = (MADE | AROUND)[name]
    policy = GaussianPolicy(START.actions) if name == "heuristic" else START
    result = learn(ma.open_log(folder), policy, objective, **HOW)
    assert np.isfinite(result.history[-1].objective)
    memory = learn(a_log(), policy, objective, **(HOW | {"buffer": None}))
    assert result.objective == memory.objective  # a parameter that follows the number of rows is that of all of them


def test_a_reward_below_0_anywhere_is_told_to_all_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, rising, take = a_log(), set(), steps.Steps.take

    def watched(self, window, *more):
        rising.add(window.request.rising)
        return take(self, window, *more)

    monkeypatch.setattr(steps.Steps, "take", watched)
    for last, expected in ((0.0, {True}), (-1.0, {False})):
        rewards = np.append(log.rewards[:-1], last)
        path = tmp_path / f"{last}.parquet"
        to_parquet(LoggedData(log.contexts, log.actions, rewards, ACTIONS, log.propensities), path, rows_per_group=100)
        rising.clear()
        learn(ma.open_log(path), START, IPS(), sampler=SampledSoftmax(3), **HOW)
        assert rising == expected


def test_what_looks_at_all_rows_together_is_refused(folder: Path) -> None:
    class Whole(LPI):
        row_by_row = False

    with pytest.raises(InvalidInput, match=r"read_log.*may look at all rows of a log together"):
        learn(ma.open_log(folder), START, Whole(), **HOW)
    with pytest.raises(InvalidInput, match="may look at all rows"):
        learn(ma.open_log(folder), START, Distance(Whole(), 1.0), **HOW)
    with pytest.raises(InvalidInput, match="depends on the other rows"):
        learn(ma.open_log(folder), START, PWLL(lambda r, p: r / r.sum()), **HOW)


# ---- what goes wrong


def test_errors_of_the_reader_name_the_file(folder: Path) -> None:
    def damage(moment) -> None:
        if (moment.epoch, moment.batch) == (0, 0):
            path = folder / "b.parquet"
            path.write_bytes(path.read_bytes()[:-50] + bytes(50))

    with pytest.raises(DataError, match=r"b\.parquet"):
        learn(ma.open_log(folder), START, cLPI(), progress=damage, **HOW)
    assert no_reader()


def test_a_file_that_changes_during_the_run_is_refused(folder: Path) -> None:
    def touch(moment) -> None:
        if (moment.epoch, moment.batch) == (1, 0):
            to_parquet(a_log().rows(slice(350, None)), folder / "b.parquet", rows_per_group=130)

    with pytest.raises(DataError, match=r"b\.parquet: changed since it was opened"):
        learn(ma.open_log(folder), START, cLPI(), progress=touch, **HOW)
    assert no_reader()


def test_a_file_that_is_gone_is_named(folder: Path) -> None:
    def remove(moment) -> None:
        if (moment.epoch, moment.batch) == (1, 0):
            (folder / "b.parquet").unlink()

    with pytest.raises(DataError, match=r"b\.parquet: no such file"):
        learn(ma.open_log(folder), START, cLPI(), progress=remove, **HOW)
    assert no_reader()


def test_the_reader_ends_with_an_interruption(folder: Path) -> None:
    def interrupt(moment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(ma.open_log(folder), START, cLPI(), progress=interrupt, **HOW)
    assert no_reader()


def test_one_row_and_one_row_group_larger_than_the_buffer(tmp_path: Path) -> None:
    to_parquet(a_log(1), tmp_path / "one.parquet")
    assert len(learn(ma.open_log(tmp_path / "one.parquet"), START, cLPI(), epochs=1, device="cpu").history) == 1
    to_parquet(a_log(), tmp_path / "whole.parquet")
    source = ma.open_log(tmp_path / "whole.parquet")
    assert source.row_groups == (len(a_log()),)
    assert len(learn(source, START, cLPI(), **HOW).history) == HOW["epochs"]
    with pytest.raises(InvalidInput, match=r"validation: .* of a log of one row group"):
        learn(source, START, cLPI(), validation=0.1, **HOW)


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    source = ma.open_log(folder)
    for buffer in (0, 63, 1.5, "many"):
        with pytest.raises(InvalidInput, match="buffer"):
            learn(source, START, cLPI(), **(HOW | {"buffer": buffer}))
    ma.logs.to_csv(a_log(50, listed=False), tmp_path / "rounds.csv")
    with pytest.raises(InvalidInput, match=r"log: .*in one order only"):
        learn(ma.open_log(tmp_path / "rounds.csv"), START, cLPI())
    with pytest.raises(InvalidInput, match="validation"):
        learn(source, START, cLPI(), validation="half", **HOW)  # type: ignore[arg-type]
    huge = a_log(listed=False)
    huge = LoggedData(huge.contexts * 1e19, huge.actions, huge.rewards, ACTIONS, huge.propensities)
    to_parquet(huge, tmp_path / "huge.parquet", rows_per_group=100)
    with pytest.raises(InvalidInput, match="contexts over the temperature"):
        learn(ma.open_log(tmp_path / "huge.parquet"), START, cLPI(), **HOW)
    with pytest.raises(InvalidInput, match="rewards"):
        low = LoggedData(huge.contexts, huge.actions, huge.rewards - 0.5, ACTIONS, huge.propensities)
        to_parquet(low, tmp_path / "low.parquet", rows_per_group=100)
        survey(ma.open_log(tmp_path / "low.parquet"), RegKL(), 200)

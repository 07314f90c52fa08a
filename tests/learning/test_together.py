"""Several processes learn one policy: the numbers of one process, whatever is divided, whoever dies on the way."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import learning_together as parts
from manyarms.engine import local
from manyarms.errors import InvalidInput, StorageError
from manyarms.estimators import PACBayes, cIPS, cLPI
from manyarms.estimators.pessimism import Heuristic
from manyarms.learning import SampledSoftmax, TorchEncoder, learn
from manyarms.learning.processes import require_divisible
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.traffic import Seen, numbers_sent
from manyarms.logs import LoggedData, open_log, to_parquet
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy
from manyarms.policies.two_stage import TwoStagePolicy

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

EPS = {"fp32": 2.0**-24, "fp64": 2.0**-53}


@pytest.fixture(scope="module")
def engine():
    with local(2) as found:
        yield found


def assert_steps_alike(found, precision):
    """Sums of `terms` numbers in another order, of scores up to `largest`, whose powers are off by their rounding."""
    terms, largest = parts.ROWS * parts.K, {"steep": 1000.0}
    for one in found:
        (value, gradients), (other, others) = one["alone"], one["together"]
        room = EPS[precision] * terms * largest.get(one["what"].rpartition(", ")[2], 1.0)
        assert other == pytest.approx(value, rel=room, abs=room), one["what"]
        for name, gradient in gradients.items():
            scale = max(1.0, np.abs(gradient).max())
            np.testing.assert_allclose(others[name], gradient, rtol=0, atol=room * scale, err_msg=one["what"])
        assert one["reduced"] == one["model"].reduced, one["what"]


@pytest.mark.parametrize("workers", [2, 4])
def test_values_and_gradients_are_those_of_one_process(engine, workers):
    """For every objective and kind of policy; and the numbers sent are those that the model says."""
    precision = {2: "fp32", 4: "fp64"}[workers]
    found = engine.train(parts.steps_compared, workers, common=precision)
    assert len(found) == len(parts.PAIRS)
    assert_steps_alike(found, precision)


def test_many_blocks_of_actions(engine):
    assert max(engine.train(parts.large_steps, 2, common=10_001)) < 1e-12


@pytest.mark.parametrize("optimiser", ["adam", "adagrad"])
def test_several_steps_with_moments_and_small_batches(engine, optimiser):
    """Rows whose gradient is zero are stepped all the same: moments decay there, and a pull moves them."""
    for one in engine.train(parts.many_steps_compared, 2, common=optimiser):
        (values, parameters), (others, theirs) = one["alone"], one["together"]
        np.testing.assert_allclose(others, values, rtol=1e-9, atol=1e-9, err_msg=one["what"])
        for name, array in parameters.items():
            np.testing.assert_allclose(theirs[name], array, rtol=0, atol=1e-8, err_msg=one["what"])


def test_a_layer_that_only_some_processes_have_rows_for(engine):
    alone, together = engine.train(parts.either_way, 2)
    for name, array in alone.items():
        np.testing.assert_allclose(together[name], array, rtol=0, atol=1e-12, err_msg=name)


def test_the_clock_is_looked_at_soon_after_a_run_goes_on(engine):
    """A step takes at least 20 ms, and a look is due after a second: whatever the number of the step."""
    assert 1 <= engine.train(parts.looks_after_resuming, 1, common=1_000_000) <= 50


def test_the_model_of_what_is_sent():
    plain = numbers_sent(256, 64, 4)
    assert plain.reduced == 256 * 3 and plain.numbers_sent == 2 * plain.reduced * 3 / 4
    assert plain.bytes_sent == 4 * plain.numbers_sent
    assert numbers_sent(256, 64, 1).bytes_sent == 0
    assert numbers_sent(256, 64, 2, train="both").reduced == plain.reduced + 256 * 64
    assert Seen.by(cIPS(0.1), parts.a_log()) == Seen()
    with pytest.raises(InvalidInput, match="train"):
        numbers_sent(256, 64, 2, train="all")


# ---- whole runs

SGD = {"optimiser": "sgd", "learning_rate": 0.05, "epochs": 3, "batch": 16, "device": "cpu"}


@pytest.mark.parametrize("kind", ["heavy", "deep"])
def test_learning_is_that_of_one_process(kind):
    policy, train = parts.POLICIES[kind]
    log, held, heard = parts.a_log(rows=200), parts.a_log(2, rows=100), []
    more = SGD | {"train": train, "validation": held, "patience": 2, "score": parts.worth}
    alone = learn(log, policy, cLPI(0.1), **more)
    together = learn(log, policy, cLPI(0.1), **more, workers=2, progress=heard.append)
    room = 3 * 13 * EPS["fp32"] * 16 * parts.K  # of as many steps, each with its rounding
    np.testing.assert_allclose(together.policy.actions, alone.policy.actions, rtol=0, atol=room * 10)
    for one, other in zip(alone.history, together.history, strict=True):
        assert other.objective == pytest.approx(one.objective, rel=room)
        assert other.validation == pytest.approx(one.validation, rel=room * 10)
        assert other.score == pytest.approx(one.score, rel=room * 10)
    X = log.contexts
    np.testing.assert_allclose(
        together.policy.probabilities_of(X, log.actions), alone.policy.probabilities_of(X, log.actions), atol=room * 10
    )
    assert together.settings == alone.settings and together.notes == alone.notes
    assert len(heard) == 3 * 13 and heard[-1].epoch == 2
    assert together.policy.training_rows.overlap(alone.policy.training_rows)


def test_a_log_that_is_read_as_it_is_learned_from(tmp_path, engine):
    log = parts.a_log(rows=400)
    to_parquet(log, tmp_path / "rounds.parquet", rows_per_group=50)
    source = open_log(tmp_path / "rounds.parquet")
    start = SoftmaxPolicy(np.zeros((source.action_count, source.dim)))
    more = SGD | {"epochs": 2, "buffer": 100}
    alone, together = learn(source, start, cIPS(0.1), **more), learn(source, start, cIPS(0.1), **more, on=engine)
    np.testing.assert_allclose(together.policy.actions, alone.policy.actions, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["heavy", "light"])
def test_a_killed_process_leaves_no_trace_in_the_result(kind, tmp_path, engine):
    """Of 39 steps the 21st is never taken; the run goes on from the last checkpoint, and not from its beginning."""
    policy, train = parts.POLICIES[kind]
    runs = {}
    for name, at in (("whole", 10_000), ("killed", 21)):
        (tmp_path / name).mkdir()
        objective = parts.Watched(tmp_path / name, at, rank=1)
        folder = tmp_path / name / "checkpoint"
        runs[name] = learn(
            parts.a_log(rows=200), policy, objective, epochs=3, batch=16, device="cpu", train=train, on=engine,
            folder=folder, checkpoint_seconds=0.0 if name == "killed" else 60.0,
        )  # fmt: skip
        shards = [f"shard-{i}-of-2" for i in range(2)] if kind == "heavy" else ["shard-0-of-1"]
        assert sorted(path.name for path in folder.iterdir()) == ["current.json", "step-39"]
        assert sorted(path.name for path in (folder / "step-39").iterdir()) == shards
    assert (tmp_path / "killed" / "killed").exists()
    assert objective.times_asked() in (39, 40)  # the other process may have been asked before it noticed
    assert runs["killed"].policy.actions.tobytes() == runs["whole"].policy.actions.tobytes()
    if policy.encoder is not None:
        assert runs["killed"].policy.encoder.W.tobytes() == runs["whole"].policy.encoder.W.tobytes()
    assert [e.objective for e in runs["killed"].history] == [e.objective for e in runs["whole"].history]


def test_an_engine_that_is_open_already_tells_how_far_it_is(engine):
    heard = []
    learn(parts.a_log(), SoftmaxPolicy(parts.BETA), cIPS(0.1), epochs=2, device="cpu", on=engine, progress=heard.append)
    assert [moment.epoch for moment in heard][-1] == 1 and len(heard) >= 2


def test_more_processes_than_actions_are_refused_whatever_is_learned():
    log = parts.a_log()
    log = LoggedData(log.contexts, log.actions % 2, log.rewards, 2, np.full(len(log), 0.5))
    with local(3) as wide:
        for train, encoder in (("both", parts.DEEP), ("actions", None)):
            with pytest.raises(InvalidInput, match=r"^workers: expected at most 2"):
                learn(log, SoftmaxPolicy(parts.BETA[:2], encoder=encoder), cIPS(0.1), train=train, on=wide)


def test_checkpoints_that_do_not_fit_are_refused(tmp_path, engine):
    """One folder after the other: another number of processes, one process, another run, a damaged shard, half a step."""
    folder, log, start = tmp_path / "run", parts.a_log(rows=64), SoftmaxPolicy(np.zeros((parts.K, parts.D)))
    more = SGD | {"schedule": "constant", "folder": folder}
    first = learn(log, start, cIPS(0.1), **more, on=engine)
    assert json.loads((folder / "current.json").read_text())["shards"] == 2
    with pytest.raises(InvalidInput, match=r"workers.*2: the run in .* was divided"):
        learn(log, start, cIPS(0.1), **more, on=engine, workers=3)
    with pytest.raises(InvalidInput, match=r"workers.*one process, and in"):
        learn(log, start, cIPS(0.1), **more)
    with pytest.raises(InvalidInput, match=r"folder.*another log"):
        learn(log, start, cIPS(0.2), **more, on=engine)
    (folder / "step-99" / "shard-0-of-2").mkdir(parents=True)  # whoever wrote this was killed
    longer = learn(log, start, cIPS(0.1), **more | {"epochs": 4}, on=engine)
    assert [e.objective for e in longer.history[:3]] == [e.objective for e in first.history]
    assert not (folder / "step-99").exists()
    (arrays,) = (folder / "step-16" / "shard-1-of-2").glob("arrays-*.npz")
    arrays.write_bytes(arrays.read_bytes()[:-100])
    with pytest.raises(StorageError, match="shard-1-of-2"):
        learn(log, start, cIPS(0.1), **more | {"epochs": 5}, on=engine)


# ---- what is refused, before anything is started


@pytest.mark.parametrize(
    ("policy", "settings", "workers", "said"),
    [
        (GaussianPolicy(parts.BETA, 1.0), {}, 2, "policy"),
        (TwoStagePolicy(np.zeros((5, parts.D)), parts.LABELS, parts.MODEL), {}, 2, "policy"),
        (SoftmaxPolicy(parts.BETA), {"sampler": SampledSoftmax(8)}, 2, "sampler"),
        (SoftmaxPolicy(parts.BETA), {}, parts.K + 1, "workers"),
    ],
)
def test_what_cannot_be_divided_is_refused(policy, settings, workers, said):
    with pytest.raises(InvalidInput, match=f"^{said}"):
        learn(parts.a_log(), policy, cIPS(0.1), **settings, workers=workers)


def test_more_that_is_refused(engine):
    log, start = parts.a_log(), SoftmaxPolicy(parts.BETA)
    for more, said in (
        ({"on": "spark"}, "on"),
        ({"workers": 0}, "workers"),
        ({"workers": 2, "score": lambda policy: 0.0}, "score"),
    ):
        with pytest.raises(InvalidInput, match=f"^{said}"):
            learn(log, start, cIPS(0.1), **more)
    with pytest.raises(InvalidInput, match="policy"):
        learn(log, GaussianPolicy(parts.BETA, 1.0), PACBayes(cIPS(0.1)), workers=2)
    normed = torch.nn.Sequential(torch.nn.Linear(parts.D, parts.D), torch.nn.BatchNorm1d(parts.D))
    with pytest.raises(InvalidInput, match="BatchNorm"):
        require_divisible(
            SoftmaxPolicy(parts.BETA, encoder=TorchEncoder(normed, parts.D, parts.D)), TrainingSettings(), 2
        )


def test_an_error_of_the_objective_is_the_error(engine):
    """It comes from processes that all fail alike."""
    with pytest.raises(InvalidInput, match=re.escape("looks at every action")):
        learn(parts.a_log(), SoftmaxPolicy(parts.BETA), Heuristic(cIPS(0.1)), on=engine)

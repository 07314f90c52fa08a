"""Learning on a real Ray runtime: the policy of one process, for every objective, and whoever dies on the way."""

from __future__ import annotations

import numpy as np
import pytest

import learning_together as parts
from manyarms.errors import InvalidInput
from manyarms.estimators import cIPS, cLPI
from manyarms.learning import learn
from manyarms.logs import open_log, to_parquet
from manyarms.policies import SoftmaxPolicy

ROOM = 2.0**-24 * parts.ROWS * parts.K  # sums of so many numbers in another order


def test_values_and_gradients_are_those_of_one_process(ray_engine):
    for one in ray_engine.train(parts.steps_compared, 2, common="fp32"):
        (value, gradients), (other, others) = one["alone"], one["together"]
        room = ROOM * (1000.0 if one["what"].endswith("steep") else 1.0)  # powers are off by the rounding of scores
        assert other == pytest.approx(value, rel=room, abs=room), one["what"]
        for name, gradient in gradients.items():
            scale = max(1.0, np.abs(gradient).max())
            np.testing.assert_allclose(others[name], gradient, rtol=0, atol=room * scale, err_msg=one["what"])
        assert one["reduced"] == one["model"].reduced, one["what"]


def test_a_folder_of_files_is_learned_from_as_in_one_process(ray_engine, tmp_path):
    (tmp_path / "rounds").mkdir()
    for i in range(2):
        to_parquet(parts.a_log(i, rows=200), tmp_path / "rounds" / f"{i}.parquet", rows_per_group=50)
    source = open_log(tmp_path / "rounds")
    start = SoftmaxPolicy(np.zeros((source.action_count, source.dim)))
    more = {"optimiser": "sgd", "learning_rate": 0.05, "epochs": 2, "batch": 16, "buffer": 100, "device": "cpu"}
    heard = []
    alone, together = (
        learn(source, start, cLPI(0.1), **more),
        learn(source, start, cLPI(0.1), **more, on=ray_engine, workers=2),
    )
    np.testing.assert_allclose(together.policy.actions, alone.policy.actions, rtol=0, atol=1e-5)
    assert together.notes == alone.notes and not heard


def test_a_killed_process_leaves_no_trace_in_the_result(ray_engine, tmp_path):
    runs = {}
    for name, at in (("whole", 10_000), ("killed", 21)):
        (tmp_path / name).mkdir()
        objective = parts.Watched(tmp_path / name, at, rank=1)
        runs[name] = learn(
            parts.a_log(rows=200), SoftmaxPolicy(parts.BETA), objective, epochs=3, batch=16, device="cpu", on=ray_engine,
            workers=2, folder=tmp_path / name / "checkpoint", checkpoint_seconds=0.0 if name == "killed" else 60.0,
        )  # fmt: skip
    assert (tmp_path / "killed" / "killed").exists()
    assert objective.times_asked() in (39, 40)  # it went on from the last checkpoint, and not from its beginning
    assert runs["killed"].policy.actions.tobytes() == runs["whole"].policy.actions.tobytes()
    assert [e.objective for e in runs["killed"].history] == [e.objective for e in runs["whole"].history]


def test_an_error_names_what_is_wrong(ray_engine, tmp_path):
    more = {"epochs": 1, "device": "cpu", "folder": tmp_path / "run", "on": ray_engine}
    learn(parts.a_log(), SoftmaxPolicy(parts.BETA), cIPS(0.1), **more, workers=2)
    with pytest.raises(InvalidInput, match=r"folder.*another log"):
        learn(parts.a_log(), SoftmaxPolicy(parts.BETA), cIPS(0.2), **more, workers=2)


def test_on_the_command_line(ray_engine, command, tmp_path):
    log = tmp_path / "rounds.parquet"
    to_parquet(parts.a_log(rows=400), log)
    for out, on in (("here", "local"), ("there", "ray")):
        command(
            "learn", log, "--on", on, "--out", tmp_path / out, "--optimiser", "sgd", "--epochs", 2, "--device", "cpu",
        )  # fmt: skip
    assert (tmp_path / "there" / "report.html").exists() and not (tmp_path / "there" / "checkpoint").exists()

"""benchmarks/softmax.py, pessimism.py and streaming.py at tiny sizes: they run, and end with their figures by name."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """A script, found as it is when it is run: beside its own modules."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    return importlib.import_module(request.param)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read as Linux gives them")
@pytest.mark.parametrize("found", ["softmax"], indirect=True)
def test_the_softmax_benchmark_ends_with_its_figures(found, capsys, monkeypatch) -> None:
    """In this process, where each measurement would have one of its own: starting PyTorch is most of the time."""
    from _softmax import CHILDREN

    monkeypatch.setattr(found, "child", lambda name, threads, **more: CHILDREN[name](**more))
    found.main(["--actions", "2000"])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    promised = {"cpu_plain_over_ours", "cpu_peak_gb", "support_epoch_s", "topk_over_gemv", "gpu_d128_ms", "gpu_d128_gib",
                "gpu_d64_ms", "gpu_plain_over_ours_d128"}  # fmt: skip
    assert promised <= set(figures)
    assert all(figures[name] > 0 for name in promised if not name.startswith("gpu"))
    assert torch.cuda.is_available() or figures["gpu_d128_ms"] is None


@pytest.mark.parametrize("found", ["softmax"], indirect=True)
def test_both_sides_take_the_same_step(found) -> None:
    """Plain PyTorch and ours start alike, and one step leaves them alike."""
    from _softmax import RATE, TAU, a_batch, beta_of

    from manyarms.estimators import cLPI
    from manyarms.learning import learn
    from manyarms.policies import SoftmaxPolicy

    log, start = a_batch(300, 8, 32), beta_of(300, 8)
    ours = learn(
        log, SoftmaxPolicy(start), cLPI(TAU), epochs=1, batch=32, learning_rate=RATE, device="cpu"
    ).policy.actions
    beta = torch.nn.Parameter(torch.tensor(start))
    optimiser = torch.optim.Adam([beta], lr=RATE)
    scores = torch.tensor(log.contexts, dtype=torch.float32) @ beta.T
    loss = torch.nn.functional.cross_entropy(scores, torch.tensor(log.actions), reduction="none")
    (loss * torch.tensor(1 / np.maximum(log.propensities, TAU), dtype=torch.float32)).mean().backward()
    optimiser.step()
    np.testing.assert_allclose(ours, beta.detach().numpy(), atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("found", ["pessimism"], indirect=True)
def test_the_pessimism_benchmark_ends_with_its_figures(found, capsys) -> None:
    found.main(["--rows", "600", "--only", "epoch", "--only", "products"])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"es_epoch_s", "es_epoch_over_products"} <= set(figures)
    assert all(value > 0 for value in figures.values())


@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read as Linux gives them")
@pytest.mark.parametrize("found", ["streaming"], indirect=True)
def test_the_streaming_benchmark_ends_with_its_figures(found, capsys, monkeypatch) -> None:
    """In this process: both sides learn from the same rows, of which the streamed one has a part in memory."""
    runs = {}

    def here(task: str, folder: Path, sizes: object) -> dict[str, float]:
        runs[task] = found.be_child(task, str(folder), sizes)
        return {**runs[task], "grown_mb": 1.0}  # of this process, which has run other tests

    threads = torch.get_num_threads()
    monkeypatch.setattr(found, "child", here)
    monkeypatch.setattr(found, "GROUP", 500)
    found.main(
        ["--rows", "4000", "--actions", "50", "--dim", "4", "--batch", "100", "--turns", "1", "--buffer", "1000"]
    )
    torch.set_num_threads(threads)
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"stream_over_memory", "stream_learn_peak_mb", "stream_learn_log_mb", "stream_learn_limit_mb"} <= set(
        figures
    )
    assert all(value > 0 for value in figures.values())
    assert all(np.isfinite(one["objective"]) for one in runs.values())

"""Learning by the exponential-smoothing bound with Gaussian policies: time of an epoch; ends with one line of JSON.

    python benchmarks/pessimism.py [--rows 57000]

FashionMNIST where MANYARMS_DATA is set, made-up images of the same size elsewhere: 57,000 rows, K = 10, d = 784, S = 32, batch
256.
`es_epoch_over_products` is the time of a step over that of its S x batch x K products alone, forwards and backwards: the part
that no implementation of the thesis's form can do without.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Sequence

import numpy as np
import torch
from _report import GOALS, Figures, as_json, report
from _timing import alternate, clock, over, summary

from manyarms.estimators import ES, PACBayes
from manyarms.learning.loop import TrainingRun
from manyarms.learning.normal_choice import monte_carlo_choice
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy

GOALS |= {"es_epoch_s": (True, 20.0), "es_epoch_over_products": (True, 1.5)}
K, DIM, DRAWS, BATCH = 10, 784, 32, 256


def a_log(rows: int) -> LoggedData:
    """Images over their norm, labels as right answers, logged by a softmax policy."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((rows, DIM)))
    y = rng.integers(0, K, rows)
    if os.environ.get("MANYARMS_DATA"):
        from manyarms.worlds.image_files import read_images

        images = read_images("fashion-mnist")
        X, y = images.train[:rows].astype(np.float64), images.train_classes[:rows]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    logging = SoftmaxPolicy(rng.standard_normal((K, DIM)))
    actions = logging.sample_rows(X, rng)
    propensities = logging.probabilities_of(X, actions)
    return LoggedData(X, actions, (actions == y).astype(float), K, propensities, logging=logging)


def run_epoch(rows: int) -> Figures:
    """An epoch by the ES bound, S = 32 draws as in the thesis, and by quadrature, on the threads that PyTorch takes."""
    log = a_log(rows)
    prior = GaussianPolicy(np.asarray(log.logging.actions), 1.0)  # type: ignore[union-attr]
    found: Figures = {}
    for name, draws in (("es_epoch_s", DRAWS), ("es_quadrature_epoch_s", None)):
        run = TrainingRun(
            log, prior, PACBayes(ES(0.94)), TrainingSettings(batch=BATCH, draws=draws), torch.device("cpu")
        )
        order = np.random.default_rng(0).permutation(len(log))
        start = time.perf_counter()
        for step, first in enumerate(range(0, len(log), BATCH)):
            run.step_on(order[first : first + BATCH], batch=step, step=step, rate=1e-3)
        found[name] = time.perf_counter() - start
    return found


def run_products(rows: int) -> Figures:
    """One step against its S x batch x K products alone, forwards and backwards, on one thread."""
    torch.set_num_threads(1)
    log = a_log(BATCH)
    prior = GaussianPolicy(np.asarray(log.logging.actions), 1.0)  # type: ignore[union-attr]
    run = TrainingRun(log, prior, PACBayes(ES(0.94)), TrainingSettings(batch=BATCH, draws=DRAWS), torch.device("cpu"))
    index, noise = np.arange(BATCH), torch.randn(DRAWS)
    z = torch.randn(BATCH, K)

    def step() -> float:
        start = clock()
        run.step_on(index, rate=1e-3)
        return clock() - start

    def products() -> float:
        start = clock()
        scores = z.clone().requires_grad_()
        monte_carlo_choice(scores, noise).sum().backward()
        return clock() - start

    times = alternate(40, step, products)
    print("  " + summary(("step", "products"), times))
    return {"es_epoch_over_products": over(times, 0, 1)}


def run_large(rows: int) -> Figures:
    """K = 10,000 actions, d = 32, batch 256, by quadrature: a step's seconds and the most memory of this process."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((BATCH, 32))
    logging = SoftmaxPolicy(rng.standard_normal((10_000, 32)) * 0.3)
    actions = logging.sample_rows(X, rng)
    log = LoggedData(X, actions, np.ones(BATCH), 10_000, logging.probabilities_of(X, actions), logging=logging)
    run = TrainingRun(
        log,
        GaussianPolicy(np.asarray(logging.actions)),
        PACBayes(ES(0.9)),
        TrainingSettings(batch=BATCH),
        torch.device("cpu"),
    )
    run.step_on(np.arange(BATCH), rate=1e-3)
    start = time.perf_counter()
    run.step_on(np.arange(BATCH), step=1, rate=1e-3)
    spent = time.perf_counter() - start
    return {"es_1e4_step_s": spent, "es_1e4_peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9}


PARTS = {"epoch": run_epoch, "products": run_products, "large": run_large}


def main(arguments: Sequence[str] | None = None) -> Figures:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=57_000, help="rows of the log (default 57,000)")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given several times")
    asked = parser.parse_args(arguments)
    chosen = {name: (lambda name=name: PARTS[name](asked.rows)) for name in (asked.only or PARTS)}
    figures = report(chosen, {name: (PARTS[name].__doc__ or "").splitlines()[0] for name in chosen})
    print(as_json(figures))
    return figures


if __name__ == "__main__":
    main()

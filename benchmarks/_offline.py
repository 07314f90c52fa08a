"""The problems of benchmarks/offline.py, and the measurements that need a process of their own."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Linear
from manyarms.evaluation import evaluate, tune
from manyarms.logs import TableLog, open_log
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.priors import ActionPrior
from manyarms.priors.latent import LatentPrior
from manyarms.rewards import fit_prior, offline_estimates, sdm

GIGABYTE = 1e9
STREAMED_ACTIONS = 100
SCRIPT = Path(__file__).with_name("offline.py")


@dataclass(frozen=True)
class Sizes:
    """How large everything is; the defaults are the sizes that the goals speak of."""

    rows: int = 1_000_000
    actions: int = 100_000
    dim: int = 10
    latent: int = 10
    masked: int = 200  # actions that the loop does before it is scaled up
    policy_rows: int = 100_000
    policy_actions: int = 100_000
    policy_dim: int = 32
    turn_rows: int = 4_096
    obp_rows: int = 20_000
    obp_actions: int = 10_000
    turns: int = 5
    tries: int = 3


# ---- children: a process of its own for each measurement of memory ---------------------------------------------------


def child(task: str, sizes: Sizes, **more: str) -> dict[str, float]:
    """Run a task in a process of its own; its figures, and the most memory that the process ever held."""
    spec = json.dumps({"task": task, "sizes": asdict(sizes), **more})
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), "--child", spec], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"{task}: {run.stderr.strip()[-2000:]}")
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def be_child(spec: str) -> None:
    """The other side of `child`."""
    told = json.loads(spec)
    sizes = Sizes(**told.pop("sizes"))
    figures = CHILDREN[told.pop("task")](sizes, **told)
    figures["peak_gb"] = peak_bytes() / GIGABYTE
    print(json.dumps(figures))


def memory_of_this_process(field: str) -> float | None:
    """Linux's account of this process in bytes: `VmRSS`, what it holds now, or `VmHWM`, the most it ever held."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith(f"{field}:"):
                return float(line.split()[1]) * 1024
    return None


def peak_bytes() -> float:
    """The most memory that this process has held.

    ru_maxrss also has what the *parent* held when it started this process, so that Linux's own account comes first.
    """
    unit = 1.0 if sys.platform == "darwin" else 1024.0  # bytes on macOS, kilobytes elsewhere
    return memory_of_this_process("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def stopwatch(figures: dict[str, float]) -> Iterator[None]:
    """Wall-clock and CPU seconds."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    figures["seconds"], figures["cpu_seconds"] = time.perf_counter() - wall, time.process_time() - cpu


def latent_prior(sizes: Sizes) -> LatentPrior:
    """W_a uniform on [-1, 1], Sigma = 3 I, Sigma_a = I."""
    rng = np.random.default_rng(0)
    W = rng.uniform(-1, 1, (sizes.actions, sizes.dim, sizes.latent))
    return LatentPrior(W, rng.uniform(-1, 1, sizes.latent), 3 * np.eye(sizes.latent), np.eye(sizes.dim))


def rounds_of(sizes: Sizes) -> LoggedData:
    """A uniform log of the latent world."""
    rng = np.random.default_rng(1)
    prior = latent_prior(sizes)
    theta = prior.matrices @ (prior.mean + np.sqrt(3.0) * rng.standard_normal(sizes.latent))
    theta += rng.standard_normal(theta.shape)
    X = rng.uniform(-1, 1, (sizes.rows, sizes.dim))
    A = rng.integers(sizes.actions, size=sizes.rows)
    R = np.einsum("nd,nd->n", X, theta[A]) + rng.standard_normal(sizes.rows)
    return LoggedData(X, A, R, sizes.actions, propensities=np.full(sizes.rows, 1 / sizes.actions))


def sdm_child(sizes: Sizes, path: str) -> dict[str, float]:
    """sDM on a Parquet file: reading, checking, the sums and the posterior of every action, all counted."""
    prior = latent_prior(sizes)
    figures: dict[str, float] = {}
    with stopwatch(figures):
        model = sdm(open_log(path, action_count=sizes.actions), prior, Linear(1.0))
        mean, _ = model.latent()
    figures["rows"], figures["latent_norm"] = float(model.belief.leaves.counts.rows.sum()), float(np.linalg.norm(mean))
    return figures


def masked_loop(log: LoggedData, prior: LatentPrior, actions: Sequence[int]) -> tuple[Array, Array]:
    """The evidence of some actions about the latent vector, as most code has it: a mask over all rows for each action."""
    inverse = np.linalg.inv(prior.action_covariance)
    P, h = np.zeros((prior.latent_dim,) * 2), np.zeros(prior.latent_dim)
    for a in actions:
        mask = log.actions == a
        X, r = log.contexts[mask], log.rewards[mask]
        G, B = X.T @ X, X.T @ r
        S = np.linalg.inv(inverse + G)
        W = prior.matrices[a]
        P += W.T @ (inverse - inverse @ S @ inverse) @ W
        h += W.T @ inverse @ S @ B
    return P, h


def policy_log(rows: int, sizes: Sizes) -> tuple[SoftmaxPolicy, LoggedData]:
    """A softmax policy in float32, and a uniform log with binary rewards."""
    rng = np.random.default_rng(3)
    K, d = sizes.policy_actions, sizes.policy_dim
    policy = SoftmaxPolicy(rng.standard_normal((K, d)).astype(np.float32) / np.float32(np.sqrt(d)))
    X = rng.standard_normal((rows, d))
    rewards = (rng.random(rows) < 0.1).astype(np.float64)
    return policy, LoggedData(X, rng.integers(K, size=rows), rewards, K, propensities=np.full(rows, 1 / K))


def bare_log_softmax(beta: Array, X: Array, actions: Ints, rows: int = 256, block: int = 2048) -> Array:
    """log pi(a_i|x_i), nothing else: scores by blocks, their exponentials, the sum; no care for overflow."""
    out = np.empty(len(X))
    x32 = X.astype(beta.dtype)
    room = np.empty((rows, block), dtype=beta.dtype)
    for start in range(0, len(X), rows):
        x = x32[start : start + rows]
        total = np.zeros(len(x))
        for first in range(0, len(beta), block):
            part = beta[first : first + block]
            scores = np.matmul(x, part.T, out=room[: len(x), : len(part)])
            np.exp(scores, out=scores)
            total += scores.sum(axis=1)
        own = np.einsum("nd,nd->n", x, beta[actions[start : start + rows]])
        out[start : start + rows] = own - np.log(total)
    return out


def ips_child(sizes: Sizes) -> dict[str, float]:
    """The IPS family at full size."""
    policy, log = policy_log(sizes.policy_rows, sizes)
    figures: dict[str, float] = {}
    with stopwatch(figures):
        evaluate(policy, log)
    return figures


def obp_problem(sizes: Sizes) -> tuple[SoftmaxPolicy, LoggedData]:
    """The same problem for both sides: K actions, float64."""
    rng = np.random.default_rng(4)
    K, d, n = sizes.obp_actions, sizes.policy_dim, sizes.obp_rows
    policy = SoftmaxPolicy(rng.standard_normal((K, d)) / np.sqrt(d))
    rewards = (rng.random(n) < 0.1).astype(np.float64)
    log = LoggedData(rng.standard_normal((n, d)), rng.integers(K, size=n), rewards, K, propensities=np.full(n, 1 / K))
    return policy, log


def dense_policy(policy: SoftmaxPolicy, X: Array) -> Array:
    """pi as (n, K, 1), the form that the pipeline takes."""
    scores = X @ policy.actions.T
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    dense: Array = scores[:, :, None]
    return dense


def obp_child(sizes: Sizes) -> dict[str, float]:
    """Its IPS and snIPS, with making pi counted."""
    from obp.ope import InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting

    policy, log = obp_problem(sizes)
    figures: dict[str, float] = {}
    with stopwatch(figures):
        dense = dense_policy(policy, log.contexts)
        for kind in (InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting):
            value = kind().estimate_policy_value(
                reward=log.rewards, action=log.actions, pscore=log.propensities, action_dist=dense
            )
            figures[kind.__name__] = float(value)
    return figures


def ours_child(sizes: Sizes) -> dict[str, float]:
    """The same two estimates."""
    policy, log = obp_problem(sizes)
    figures: dict[str, float] = {}
    with stopwatch(figures):
        found = evaluate(policy, log, ["ips", "snips"], replicates=0)
    figures["InverseProbabilityWeighting"] = found["ips"].value
    figures["SelfNormalizedInverseProbabilityWeighting"] = found["snips"].value
    return figures


def stream_child(sizes: Sizes, path: str) -> dict[str, float]:
    """sDM on a file: how much more memory it holds at most than before it began.

    Memory that is held, not address space: the latter grows with every thread (a stack and a heap are reserved for each),
    so that a limit on it is one on the number of cores.
    """
    log = open_log(path, action_count=STREAMED_ACTIONS)
    next(log.chunks())  # so that everything that reading needs is loaded
    W = np.ones((STREAMED_ACTIONS, sizes.dim, 2))
    prior = LatentPrior(W, np.zeros(2), np.eye(2), np.eye(sizes.dim))
    held = memory_of_this_process("VmRSS") or peak_bytes()
    model = sdm(log, prior, Linear(1.0))
    grown = (peak_bytes() - held) / 1e6
    return {"rows": float(model.belief.leaves.counts.rows.sum()), "grown_mb": grown}


def _grown(log: TableLog, work: Callable[[TableLog], object]) -> dict[str, float]:
    """How much more memory some work on a log holds at most than before it began, and its seconds."""
    next(log.chunks())  # so that everything that reading needs is loaded
    figures: dict[str, float] = {}
    held = memory_of_this_process("VmRSS") or peak_bytes()
    with stopwatch(figures):
        work(log)
    figures["grown_mb"] = (peak_bytes() - held) / 1e6
    return figures


def fit_prior_child(sizes: Sizes, path: str) -> dict[str, float]:
    """Variances fitted to a folder, with rows held out for the check: three passes."""
    prior = ActionPrior(STREAMED_ACTIONS, np.zeros(sizes.dim), np.eye(sizes.dim))
    return _grown(open_log(path, action_count=STREAMED_ACTIONS), lambda log: fit_prior(log, prior, Linear(2.0)))


def estimates_child(sizes: Sizes, path: str) -> dict[str, float]:
    """What a diffusion prior is pre-trained on: a ridge regression for every action."""
    return _grown(open_log(path, action_count=STREAMED_ACTIONS), offline_estimates)


def tune_child(sizes: Sizes, path: str) -> dict[str, float]:
    """The exponent of exponential smoothing for a softmax policy, chosen from a grid."""
    beta = np.random.default_rng(6).standard_normal((STREAMED_ACTIONS, sizes.dim))
    return _grown(open_log(path, action_count=STREAMED_ACTIONS), lambda log: tune(SoftmaxPolicy(beta), log))


CHILDREN: dict[str, Callable[..., dict[str, float]]] = {
    "sdm": sdm_child,
    "ips": ips_child,
    "obp": obp_child,
    "ours": ours_child,
    "stream": stream_child,
    "fit_prior": fit_prior_child,
    "estimates": estimates_child,
    "tune": tune_child,
}

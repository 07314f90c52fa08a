"""Speed and memory on logs; ends with one line of JSON, its figures by name.

python benchmarks/offline.py                 everything; Open Bandit Pipeline is left out where it is not installed
python benchmarks/offline.py --only sdm      one part; --list names them

Open Bandit Pipeline does not install plainly on current Pythons; beside its dependencies (pandas, tqdm, seaborn, pyyaml, torch,
scikit-learn) `pip install --no-deps --ignore-requires-python obp==0.5.7` works.
"""

from __future__ import annotations

import os

# one thread for everybody, and before numpy is loaded: two pools that spin on the same cores measure each other
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _report import Figures, as_json, first_line
from _timing import alternate, over, summary

from manyarms._typing import Array, Ints
from manyarms.beliefs import Linear
from manyarms.evaluation import DM, DR, IPS, evaluate
from manyarms.experiments.ope_obd import MADE_UP, by_position, estimated_policy, samples, source
from manyarms.latent_prior import LatentPrior
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.reward_models import dm_frequentist, sdm

GIGABYTE = 1e9
# what the figures have to reach: (is it an upper bound, the bound)
GOALS: dict[str, tuple[bool, float]] = {
    "sdm_seconds": (True, 4.0),
    "sdm_peak_gb": (True, 1.0),
    "loop_over_sdm": (False, 15.0),
    "ips_over_logsoftmax": (True, 1.5),
    "ips_peak_gb": (True, 1.0),
    "obp_over_ours_ips_1e4": (False, 1.0),
    "obp_memory_over_ours": (False, 10.0),
    "obp_agreement": (True, 1e-6),
}


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
        [sys.executable, "-W", "ignore", __file__, "--child", spec], capture_output=True, text=True, check=False
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


def peak_bytes() -> float:
    """The most memory that this process has held.

    ru_maxrss also has what the *parent* held when it started this process, so that Linux's own account comes first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024
    unit = 1.0 if sys.platform == "darwin" else 1024.0  # bytes on macOS, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def stopwatch(figures: dict[str, float]) -> Iterator[None]:
    """Wall-clock and CPU seconds."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    figures["seconds"], figures["cpu_seconds"] = time.perf_counter() - wall, time.process_time() - cpu


# ---- sDM from Parquet -------------------------------------------------------------------------------------------------


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
    from manyarms.logs.parquet import ParquetLog

    prior = latent_prior(sizes)
    figures: dict[str, float] = {}
    with stopwatch(figures):
        model = sdm(ParquetLog(path, action_count=sizes.actions), prior, Linear(1.0))
        mean, _ = model.latent()
    figures["rows"], figures["latent_norm"] = float(model.belief.leaves.counts.rows.sum()), float(np.linalg.norm(mean))
    return figures


def run_sdm(sizes: Sizes) -> Figures:
    """sDM from Parquet: seconds with the read counted (best of several processes), and the most memory."""
    from manyarms.logs.parquet import to_parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rounds.parquet"
        to_parquet(rounds_of(sizes), path)
        found = [child("sdm", sizes, path=str(path)) for _ in range(sizes.tries)]
        print(
            f"  {path.stat().st_size / 1e6:.0f} MB of Parquet; wall "
            + ", ".join(f"{f['seconds']:.2f}" for f in found)
            + " s"
        )
    if {f["rows"] for f in found} != {float(sizes.rows)}:
        raise RuntimeError("rows were lost on the way")
    return {
        "sdm_seconds": min(f["seconds"] for f in found),
        "sdm_cpu_seconds": min(f["cpu_seconds"] for f in found),
        "sdm_peak_gb": max(f["peak_gb"] for f in found),
    }


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


def run_loop(sizes: Sizes) -> Figures:
    """A loop that masks the rows of each action, against sDM on the same log in memory."""
    log, prior = rounds_of(sizes), latent_prior(sizes)
    some = np.random.default_rng(2).choice(sizes.actions, min(sizes.masked, sizes.actions), replace=False).tolist()

    def loop() -> float:
        start = time.process_time()
        masked_loop(log, prior, some)
        return (time.process_time() - start) * sizes.actions / len(some)

    def ours() -> float:
        start = time.process_time()
        sdm(log, prior, Linear(1.0)).latent()
        return time.process_time() - start

    times = alternate(max(1, sizes.turns // 2), loop, ours)
    print(
        f"  the loop's time is that of {len(some)} actions, scaled to {sizes.actions:,}; "
        + summary(("loop", "sDM"), times)
    )
    return {"loop_over_sdm": over(times, 0, 1), "loop_seconds": float(np.median(times[:, 0]))}


# ---- IPS with a softmax policy ----------------------------------------------------------------------------------------


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


def run_ips(sizes: Sizes) -> Figures:
    """The IPS family with a softmax policy: time against the bare blockwise log-softmax, and memory at full size."""
    policy, log = policy_log(sizes.turn_rows, sizes)
    beta = policy.weights
    pi = np.exp(bare_log_softmax(beta, log.contexts, log.actions))
    error = float(np.abs(pi / policy.probabilities_of(log.contexts, log.actions) - 1).max())
    print(f"  both sides have the same probabilities, to {error:.1e}")

    def bare() -> float:
        start = time.process_time()
        bare_log_softmax(beta, log.contexts, log.actions)
        return time.process_time() - start

    def ours() -> float:
        start = time.process_time()
        evaluate(policy, log)
        return time.process_time() - start

    times = alternate(sizes.turns, ours, bare)
    print(f"  {sizes.turn_rows:,} rows a turn: " + summary(("IPS family", "bare"), times))
    whole = child("ips", sizes)
    return {
        "ips_over_logsoftmax": over(times, 0, 1),
        "ips_peak_gb": whole["peak_gb"],
        "ips_full_seconds": whole["seconds"],
    }


# ---- Open Bandit Pipeline ---------------------------------------------------------------------------------------------


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
    scores = X @ policy.weights.T
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


def run_obp(sizes: Sizes) -> Figures:
    """Open Bandit Pipeline's IPS and snIPS, making pi counted on both sides, each in a process of its own."""
    names = ("obp_over_ours_ips_1e4", "obp_memory_over_ours")
    if find_spec("obp") is None:
        print("  left out: Open Bandit Pipeline is not installed (see the head of this file)")
        return dict.fromkeys(names)
    theirs = [child("obp", sizes) for _ in range(sizes.tries)]
    ours = [child("ours", sizes) for _ in range(sizes.tries)]
    for name in ("InverseProbabilityWeighting", "SelfNormalizedInverseProbabilityWeighting"):
        if abs(theirs[0][name] - ours[0][name]) > 1e-9 * max(1.0, abs(ours[0][name])):
            raise RuntimeError(f"{name}: {theirs[0][name]} and {ours[0][name]} are not the same estimate")
    best = {who: min(f["cpu_seconds"] for f in found) for who, found in (("theirs", theirs), ("ours", ours))}
    memory = {who: max(f["peak_gb"] for f in found) for who, found in (("theirs", theirs), ("ours", ours))}
    print(
        f"  {sizes.obp_rows:,} rows, K={sizes.obp_actions:,}: theirs {best['theirs']:.2f} s, ours {best['ours']:.2f} s"
    )
    return {
        "obp_over_ours_ips_1e4": best["theirs"] / best["ours"],
        "obp_memory_over_ours": memory["theirs"] / memory["ours"],
        "obp_peak_gb": memory["theirs"],
        "obp_ours_peak_gb": memory["ours"],
    }


def run_agreement(sizes: Sizes) -> Figures:
    """Values on the Open Bandit samples against Open Bandit Pipeline's, where the definitions agree."""
    try:
        from obp.ope import (
            DirectMethod,
            DoublyRobust,
            InverseProbabilityWeighting,
            SelfNormalizedInverseProbabilityWeighting,
        )
    except ImportError as error:
        print(f"  left out: {error} (see the head of this file)")
        return {"obp_agreement": None}
    data = source()
    if data == MADE_UP:
        print("  the samples were not found (MANYARMS_DATA): on made-up rounds of the same form")
    worst = 0.0
    for campaign in ["all"] if data == MADE_UP else ["all", "men", "women"]:
        random, bts = samples(campaign, data)
        log = by_position(random)
        policy = estimated_policy(by_position(bts))
        model = dm_frequentist(log, 1.0)
        K = log.action_count
        dense = dense_policy(policy, log.contexts)
        predicted = model.block(log.contexts, np.arange(K))[:, :, None]
        rows = {"reward": log.rewards, "action": log.actions, "pscore": log.propensities, "action_dist": dense}
        theirs = {
            "ips": InverseProbabilityWeighting().estimate_policy_value(**rows),
            "snips": SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**rows),
            "dm": DirectMethod().estimate_policy_value(action_dist=dense, estimated_rewards_by_reg_model=predicted),
            "dr": DoublyRobust().estimate_policy_value(**rows, estimated_rewards_by_reg_model=predicted),
        }
        ours = evaluate(policy, log, [IPS("ips"), IPS("snips"), DM(model), DR(model)], replicates=0)
        for estimate, (name, value) in zip(ours.estimates, theirs.items(), strict=True):
            worst = max(worst, abs(estimate.value - float(value)))
            print(f"  {campaign:<6} {name:<6} ours {estimate.value:.9f}  theirs {float(value):.9f}")
    return {"obp_agreement": worst}


# ---- memory under a limit ---------------------------------------------------------------------------------------------


def limited_child(sizes: Sizes, path: str, limit_mb: str) -> dict[str, float]:
    """sDM on a file, in a process that may not have more memory than so much above what it has at the start."""
    import pyarrow as pa

    from manyarms.logs.parquet import ParquetLog

    pa.set_memory_pool(pa.system_memory_pool())  # the others reserve address space by the gigabyte
    log = ParquetLog(path, action_count=100)
    next(log.chunks())  # so that everything that reading needs is loaded
    prior = LatentPrior(np.ones((100, sizes.dim, 2)), np.zeros(2), np.eye(2), np.eye(sizes.dim))
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = held + int(limit_mb) * 10**6
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    model = sdm(log, prior, Linear(1.0))
    return {"rows": float(model.belief.leaves.counts.rows.sum())}


def run_stream(sizes: Sizes) -> Figures:
    """A log that is larger than the memory that the process may use (`RLIMIT_AS`): does it fold?"""
    from manyarms.logs.parquet import to_parquet

    rng = np.random.default_rng(5)
    n, d = sizes.rows * 2, sizes.dim
    log = LoggedData(rng.standard_normal((n, d)), rng.integers(100, size=n), rng.standard_normal(n), 100)
    size = (log.contexts.nbytes + log.actions.nbytes + log.rewards.nbytes) / 1e6
    limit = max(60, round(size / 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rounds.parquet"
        to_parquet(log, path)
        del log
        found = child("limited", sizes, path=str(path), limit_mb=str(limit))
    print(f"  {size:.0f} MB of rows folded with at most {limit} MB more than an idle process has")
    return {"stream_rows": int(found["rows"]), "stream_log_mb": size, "stream_limit_mb": limit}


CHILDREN: dict[str, Callable[..., dict[str, float]]] = {
    "sdm": sdm_child,
    "ips": ips_child,
    "obp": obp_child,
    "ours": ours_child,
    "limited": limited_child,
}
PARTS: dict[str, Callable[[Sizes], Figures]] = {
    "sdm": run_sdm,
    "loop": run_loop,
    "stream": run_stream,
    "ips": run_ips,
    "obp": run_obp,
    "agreement": run_agreement,
}


def verdict(name: str, value: float | int | None) -> str:
    """What the goal of a figure, if it has one, says about it."""
    if name not in GOALS:
        return ""
    at_most, bound = GOALS[name]
    goal = f"goal {'<=' if at_most else '>='} {bound:g}"
    if value is None:
        return f"{goal}, not measured"
    return f"{goal}, {'met' if (value <= bound if at_most else value >= bound) else 'MISSED'}"


def report(parts: dict[str, Callable[[], Figures]]) -> Figures:
    """Run the parts one after the other, and print the figures of each as it ends; all of them together."""
    figures: Figures = {}
    for name, part in parts.items():
        start = time.perf_counter()
        print(f"{name}: {first_line(PARTS[name])}", flush=True)
        found = part()
        for figure, value in found.items():
            shown = "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
            print(f"  {figure:<42} {shown:>14}  {verdict(figure, value)}".rstrip())
        print(f"  ({time.perf_counter() - start:.0f} s)\n", flush=True)
        figures.update(found)
        gc.collect()
    return figures


def main(arguments: Sequence[str] | None = None, sizes: Sizes | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Speed and memory on logs; ends with one line of JSON.")
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), metavar="PART", help="run this part (repeatable)"
    )
    parser.add_argument("--list", action="store_true", help="name the parts")
    parser.add_argument("--child", metavar="SPEC", help=argparse.SUPPRESS)
    for field in fields(Sizes):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        be_child(options.child)
        return
    if options.list:
        print("\n".join(f"{name:<12} {first_line(part)}" for name, part in PARTS.items()))
        return
    given = {field.name: getattr(options, field.name) for field in fields(Sizes)}
    sizes = Sizes(**{**asdict(sizes or Sizes()), **{name: value for name, value in given.items() if value is not None}})
    names = options.only or list(PARTS)
    print(as_json(report({name: partial(PARTS[name], sizes) for name in names})))


if __name__ == "__main__":
    main()

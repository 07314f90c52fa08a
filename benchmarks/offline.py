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
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _offline import (
    STREAMED_ACTIONS,
    Sizes,
    bare_log_softmax,
    be_child,
    child,
    dense_policy,
    latent_prior,
    masked_loop,
    policy_log,
    rounds_of,
)
from _report import GOALS, Figures, as_json, first_line, report
from _timing import alternate, over, summary

from manyarms.beliefs import Linear
from manyarms.estimators import DM, DR
from manyarms.evaluation import evaluate
from manyarms.logs.data import LoggedData
from manyarms.rewards.bayesian import dm_frequentist, sdm
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.sdm.open_bandit import by_position, estimated_policy, samples, source

# what the figures have to reach: (is it an upper bound, the bound)
OURS: dict[str, tuple[bool, float]] = {
    "sdm_seconds": (True, 4.0),
    "sdm_peak_gb": (True, 0.5),
    "loop_over_sdm": (False, 250.0),
    "fit_prior_stream_peak_mb": (True, 96.0),
    "estimates_stream_peak_mb": (True, 96.0),
    "tune_stream_peak_mb": (True, 96.0),
    "ips_over_logsoftmax": (True, 1.5),
    "ips_peak_gb": (True, 1.0),
    "obp_over_ours_ips_1e4": (False, 1.0),
    "obp_memory_over_ours": (False, 10.0),
    "obp_agreement": (True, 1e-6),
}
GOALS |= OURS


# ---- sDM from Parquet -------------------------------------------------------------------------------------------------


def run_sdm(sizes: Sizes) -> Figures:
    """sDM from Parquet: seconds with the read counted (best of several processes), and the most memory."""
    from manyarms.logs.formats.parquet import to_parquet

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


def run_ips(sizes: Sizes) -> Figures:
    """The IPS family with a softmax policy: time against the bare blockwise log-softmax, and memory at full size."""
    policy, log = policy_log(sizes.turn_rows, sizes)
    beta = policy.actions
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
        ours = evaluate(policy, log, ["ips", "snips", DM(model), DR(model)], replicates=0)
        for estimate, (name, value) in zip(ours.estimates, theirs.items(), strict=True):
            worst = max(worst, abs(estimate.value - float(value)))
            print(f"  {campaign:<6} {name:<6} ours {estimate.value:.9f}  theirs {float(value):.9f}")
    return {"obp_agreement": worst}


# ---- memory for a stream ----------------------------------------------------------------------------------------------


def run_stream(sizes: Sizes) -> Figures:
    """A folder of Parquet files is folded, fitted, estimated from and tuned on in less memory than half of its rows take."""
    from manyarms.logs.formats.parquet import to_parquet

    rng = np.random.default_rng(5)
    n, d, K = sizes.rows * 2, sizes.dim, STREAMED_ACTIONS
    log = LoggedData(
        rng.standard_normal((n, d)), rng.integers(K, size=n), rng.standard_normal(n), K, propensities=np.full(n, 1 / K)
    )
    size = (log.contexts.nbytes + log.actions.nbytes + log.rewards.nbytes) / 1e6
    limit = max(60, round(size / 2))
    with tempfile.TemporaryDirectory() as folder:
        for i, half in enumerate((slice(0, n // 2), slice(n // 2, n))):
            to_parquet(log.rows(half), Path(folder) / f"rounds-{i}.parquet")
        del log
        found = {task: child(task, sizes, path=folder) for task in ("stream", "fit_prior", "estimates", "tune")}
    for task, told in found.items():
        print(f"  {task}: {size:.0f} MB of rows with {told['grown_mb']:.0f} MB more than an idle process has")
        if told["grown_mb"] > limit:
            raise RuntimeError(
                f"{task}: {told['grown_mb']:.0f} MB for {size:.0f} MB of rows; at most {limit} MB were expected"
            )
    return {
        "stream_rows": int(found["stream"]["rows"]),
        "stream_log_mb": size,
        "stream_limit_mb": limit,
        "stream_peak_mb": found["stream"]["grown_mb"],
        "fit_prior_stream_peak_mb": found["fit_prior"]["grown_mb"],
        "fit_prior_stream_seconds": found["fit_prior"]["seconds"],
        "estimates_stream_peak_mb": found["estimates"]["grown_mb"],
        "tune_stream_peak_mb": found["tune"]["grown_mb"],
        "tune_stream_seconds": found["tune"]["seconds"],
    }


PARTS: dict[str, Callable[[Sizes], Figures]] = {
    "sdm": run_sdm,
    "loop": run_loop,
    "stream": run_stream,
    "ips": run_ips,
    "obp": run_obp,
    "agreement": run_agreement,
}


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
    chosen = {name: partial(PARTS[name], sizes) for name in names}
    print(as_json(report(chosen, {name: first_line(PARTS[name]) for name in chosen})))


if __name__ == "__main__":
    main()

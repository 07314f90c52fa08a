"""The exact softmax over a million actions, restricted supports, and the best k: speed and memory; ends with one line of JSON.

python benchmarks/softmax.py                what this machine has: a processor, and a GPU where there is one
python benchmarks/softmax.py --only cpu     one part; --list names them
python benchmarks/softmax.py --actions 100000    smaller, to look around
"""

from __future__ import annotations

import os

# one thread for everybody, and before numpy is loaded: two pools that spin on the same cores measure each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from _cpu_steps import floor_of_memory, in_turns, product_speedup, timed, worst_over_plain
from _report import GOALS, Figures, as_json, first_line, report
from _softmax import child, has_chunked, our_step, plain_step
from _timing import alternate, milliseconds, over, summary
from _topk import topk_over_gemv

GOALS |= {
    "cpu_plain_over_ours": (False, 4.0),
    "cpu_1e4_plain_over_ours": (False, 3.0),
    "cpu_worst_over_plain": (True, 1.0),
    "cpu_peak_gb": (True, 1.0),
    "support_epoch_s": (True, 30.0),
    "topk_over_gemv": (True, 1.1),
    "gpu_d128_ms": (True, 5.5),
    "gpu_d128_gib": (True, 3.0),
    "gpu_d64_ms": (True, 3.4),
    "gpu_k1e4_b256_ms": (True, 0.1),
    "gpu_k1e5_b1024_ms": (True, 0.3),
    "gpu_k1e6_b256_ms": (True, 0.9),
    "gpu_worst_over_eager": (True, 1.0),
}
# milliseconds below which recomputation cannot go at batch 4,096 and a million actions: products and exponentials
FLOOR_MS = {128: 4.5, 64: 3.0}


def run_cpu(actions: int) -> Figures:
    """A step of cLPI with Adam on all of beta, d=64, batch 256, one thread: plain PyTorch against ours, and bare products."""
    torch.set_num_threads(1)
    found: Figures = {}
    for name, number, turns, products in (("cpu", actions, 5, 3), ("cpu_1e4", min(actions, 10**4), 31, 2)):
        times = in_turns(number, 256, turns, products)
        print("  " + summary(("plain", "ours", "bare products"), times))
        found[f"{name}_plain_over_ours"] = over(times, 0, 1)
        found[f"{name}_step_s"], found[f"{name}_floor_s"] = (milliseconds(times, side) / 1e3 for side in (1, 2))
        found[f"{name}_plain_over_floor"] = over(times, 0, 2)
        gc.collect()
    found["cpu_product_speedup"] = product_speedup()
    found["cpu_chunked_over_ours"] = None
    if has_chunked():
        chunked, ours = plain_step(actions, 64, 256, how="chunked"), our_step(actions, 64, 256)
        times = alternate(2, partial(timed, chunked), partial(timed, ours))
        print("  " + summary(("torch's linear_cross_entropy", "ours"), times))
        found["cpu_chunked_over_ours"] = over(times, 0, 1)
        del chunked, ours
        gc.collect()
    found["cpu_worst_over_plain"], where = worst_over_plain(actions)
    print(f"  the worst: {where}")
    found["cpu_peak_gb"] = child("peak", 1, actions=actions, dim=64, rows=256)["peak_gb"]
    found["cpu_peak_floor_gb"] = floor_of_memory(actions, 64)
    return found


def run_threads(actions: int) -> Figures:
    """The same step on two threads over one, beside a matrix product: wall time."""
    one, two = (child("seconds", threads, actions=actions, dim=64, rows=256) for threads in (1, 2))
    return {f"cpu_two_threads_{name}": one[side] / two[side] for name, side in (("speedup", "step"), ("gemm", "gemm"))}


def run_support(actions: int) -> Figures:
    """An epoch over 400,000 rows with supports of 100 actions, d=64, batch 256, two threads, by lazily updated optimisers."""
    found: Figures = {}
    for optimiser in ("adagrad", "adam", "sgd"):
        rows = int(400_000 * min(1.0, actions / 1e6))
        done = child("support", 2, actions=actions, rows=rows, k0=100, dim=64, optimiser=optimiser, batch=256)
        found[f"support_{optimiser}_s"] = done["seconds"]
    adagrad = found["support_adagrad_s"]
    return {"support_epoch_s": adagrad, **found}


def run_topk(actions: int) -> Figures:
    """The exact best 100 for one context, d=64, against one matrix-vector product."""
    return topk_over_gemv(actions)


def run_gpu(actions: int) -> Figures:
    """A step of cLPI with Adam on all of beta, batch 4,096, bf16 products, on the GPU: ours, plain, compiled."""
    names = ["gpu_d128_ms", "gpu_d128_gib", "gpu_d64_ms", "gpu_plain_over_ours_d128"]
    if not torch.cuda.is_available():
        print("  no GPU here")
        return dict.fromkeys(names)
    from _gpu import burst_ms, large_ms

    print(f"  {torch.cuda.get_device_name()}, torch {torch.__version__}")
    found: Figures = {}
    for dim in (128, 64):
        ours, gib = burst_ms(actions, dim)
        found |= {f"gpu_d{dim}_ms": ours, f"gpu_d{dim}_gib": gib, f"gpu_d{dim}_share_of_floor": FLOOR_MS[dim] / ours}
        found[f"gpu_d{dim}_epochs_ms"] = large_ms(actions, dim)
        plain, plain_gib = _on_gpu(plain_step, actions, dim, 4096, "cuda")
        found |= {
            f"gpu_plain_d{dim}_ms": plain,
            f"gpu_plain_d{dim}_gib": plain_gib,
            f"gpu_plain_over_ours_d{dim}": plain / ours,
        }
    try:
        found["gpu_compile_d128_ms"], found["gpu_compile_d128_gib"] = _on_gpu(
            plain_step, actions, 128, 4096, "cuda", "compile"
        )
    except Exception as error:  # a compiler that is not there, or gives up, is no reason to lose the other figures
        print(f"  torch.compile: {type(error).__name__}: {str(error)[:100]}")
    found["gpu_fp32_d64_ms"], _ = burst_ms(actions, 64, "fp32", 1024)
    found["gpu_tf32_d64_ms"], _ = burst_ms(actions, 64, "tf32", 1024)
    return found


def run_small(actions: int) -> Figures:
    """Small steps on the GPU, epoch after epoch as `learn` takes them, beside plain PyTorch, the same captured, and the floor."""
    if not torch.cuda.is_available():
        print("  no GPU here")
        return dict.fromkeys(["gpu_k1e4_b256_ms", "gpu_k1e5_b1024_ms", "gpu_k1e6_b256_ms", "gpu_first_use_s"])
    from _gpu import first_use, small_steps

    return small_steps() | first_use()


def run_eager(actions: int) -> Figures:
    """Other objectives, optimisers and precisions on the GPU against eager PyTorch."""
    if not torch.cuda.is_available():
        print("  no GPU here")
        return {"gpu_worst_over_eager": None}
    from _gpu import against_eager

    return against_eager()


def _on_gpu(make: Callable[..., Callable[[], object]], *arguments: object) -> tuple[float, float]:
    """Milliseconds of a step (mean of 20 after 5), and the most memory in GiB."""
    gc.collect()
    torch.cuda.empty_cache()
    step = make(*arguments)
    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    spent = (time.perf_counter() - start) / 20
    return spent * 1e3, torch.cuda.max_memory_allocated() / 2**30


PARTS: dict[str, Callable[[int], Figures]] = {
    "cpu": run_cpu,
    "threads": run_threads,
    "support": run_support,
    "topk": run_topk,
    "gpu": run_gpu,
    "small": run_small,
    "eager": run_eager,
}


def main(arguments: Sequence[str] | None = None) -> Figures:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given several times")
    parser.add_argument("--list", action="store_true", help="name the parts and leave")
    parser.add_argument("--actions", type=int, default=1_000_000, help="K (default 1,000,000)")
    asked = parser.parse_args(arguments)
    if asked.list:
        for name, part in PARTS.items():
            print(f"{name:<10} {first_line(part)}")
        return {}
    chosen = {name: partial(PARTS[name], asked.actions) for name in (asked.only or PARTS)}
    figures = report(chosen, {name: first_line(PARTS[name]) for name in chosen})
    print(as_json(figures))
    return figures


if __name__ == "__main__":
    main()

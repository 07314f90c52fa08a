"""How the benchmarks report: a table while they run, what each figure has to reach, and one line of JSON at the end."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Mapping

Figures = dict[str, float | int | None]  # None: could not be measured here

# what the figures of online.py have to reach: (is it an upper bound, the bound); other benchmarks add their own
GOALS: dict[str, tuple[bool, float]] = {
    "lints_1e6_over_1e4": (True, 1.5),
    "lints_1e6_ms": (True, 1.0),
    "hierts_1e6_over_1e4": (True, 1.5),
    "hierts_1e6_ms": (True, 1.0),
    "mets_1e6_over_floor": (True, 0.1),
    "mets_1e6_ms": (True, 2.0),
    "mets_l20_1e6_over_floor": (True, 1.0),
    "mets_real_l20_over_floor": (True, 0.25),
    "mets_onehot_1e6_over_1e4": (True, 1.5),
    "churn_1e6_us": (True, 100.0),
    "churn_1e6_worst_ms": (True, 50.0),
    "textbook_1e4_over_ours": (False, 1000.0),
    "mabwiser_1e5_over_ours": (False, 1000.0),
    "contextualbandits_1e5_over_ours": (False, 1000.0),
    "vw_1e5_over_ours": (False, 1000.0),
    "numpy_1e5_over_ours": (False, 20.0),
    "allplayed_1e5_over_numpy": (True, 1.05),
    "batch_over_single": (True, 1 / 3),
    "policy_over_scan": (True, 1.3),
}


def verdict(name: str, value: float | int | None) -> str:
    """What the goal of a figure, if it has one, says about it."""
    if name not in GOALS:
        return ""
    at_most, bound = GOALS[name]
    goal = f"goal {'<=' if at_most else '>='} {bound:g}"
    if value is None:
        return f"{goal}, not measured"
    met = value <= bound if at_most else value >= bound
    return f"{goal}, {'met' if met else 'MISSED'}"


def first_line(part: Callable[..., object]) -> str:
    """What a part measures, in its own words."""
    return (part.__doc__ or "").splitlines()[0]


def report(parts: Mapping[str, Callable[[], Figures]], titles: Mapping[str, str]) -> Figures:
    """Run the parts one after the other, and print the figures of each as it ends; all of them together."""
    figures: Figures = {}
    for name, part in parts.items():
        start = time.perf_counter()
        print(f"{name}: {titles[name]}", flush=True)
        found = part()
        for figure, value in found.items():
            shown = "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
            print(f"  {figure:<42} {shown:>14}  {verdict(figure, value)}".rstrip())
        print(f"  ({time.perf_counter() - start:.0f} s)\n", flush=True)
        figures.update(found)
        gc.collect()
    return figures


def as_json(figures: Figures) -> str:
    """The figures on one line, with as many digits as anybody can use."""
    return json.dumps({name: float(f"{v:.5g}") if isinstance(v, float) else v for name, v in figures.items()})

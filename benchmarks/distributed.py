"""Work in several processes: folding and evaluating on Ray, learning together, and what is sent; docs/sizing.md is made of it.

python benchmarks/distributed.py                      everything, some minutes; ends with one line of JSON
python benchmarks/distributed.py --only fold-rows     one study (repeatable); --list names them
python benchmarks/distributed.py --quick              small sizes
python benchmarks/distributed.py --store              what was measured goes into docs/sizing.json, beside other studies
python benchmarks/distributed.py --write              measures nothing: the tables of docs/sizing.md from docs/sizing.json

`ray_fold_over_local` compares a Ray runtime that has started, two workers, with the usual pass in one process, by the clock on
the wall: sides take turns, and the figure is the median over turns of the quotient. Processes that learn together are started
three times, in turns as well; of each size the quickest is taken, since all wait for the one that a neighbour has slowed down.
"""

from __future__ import annotations

import os

# one thread for everybody, and before numpy is loaded
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import importlib.util
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from _distributed import (
    Columns,
    Sizes,
    add_by_actions,
    evaluate_by_rows,
    fold_by_rows,
    fold_by_shards,
    fold_by_workers,
    write,
)  # fmt: skip
from _report import GOALS, Figures, as_json, first_line, verdict
from scaling import _on_one_line, processor, versions

from manyarms.engine import local

if TYPE_CHECKING:
    from _together import Found, Setting

DOCS = Path(__file__).parents[1] / "docs"
FILE = "sizing.json"
GOALS |= {"ray_fold_over_local": (True, 1.5), "ray_fold_difference": (True, 1e-9)}


@dataclass(frozen=True)
class Study:
    """Something that is measured. needs: the package without which it cannot be."""

    run: Callable[[Path, Sizes, bool], dict[str, Columns]]
    needs: str | None
    makes: tuple[str, ...]

    @property
    def possible(self) -> bool:
        """Whether it can be measured here."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


def on_folder(name: str, measure: Callable[[Path, Sizes], Columns]) -> Study:
    """A study of a folder of files."""

    def run(room: Path, sizes: Sizes, quick: bool) -> dict[str, Columns]:
        folder = room / "rounds"
        if not folder.exists():
            folder.mkdir()
            write(folder, sizes, sizes.rows[-1])
        return {name: measure(folder, sizes)}

    run.__doc__ = measure.__doc__
    return Study(run, "ray", (name,))


def run_add(room: Path, sizes: Sizes, quick: bool) -> dict[str, Columns]:
    """Seconds of CPU to add the sums of two shards, and to learn sums, by the actions in them."""
    return {"add": add_by_actions(sizes)}


def run_learning(room: Path, sizes: Sizes, quick: bool) -> dict[str, Columns]:
    """A step of learning alone, crowded and together with 1, 2 and 4 processes; reductions by their size; what is sent."""
    from _together import Case, Setting

    cases: tuple[Case, ...]
    if quick:
        cases, crowd, rounds = (Case(400), Case(400, encoder=True)), 400, 1
        usual = Setting((), numbers=(1, 1_000), dim=8, batch=16, seconds=0.0, least=2, times=3)
    else:
        cases, crowd, rounds = (Case(2_000), Case(20_000), Case(20_000, encoder=True), Case(200_000)), 200_000, 3
        usual = Setting((), numbers=(1, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576))
    shares = {replace(case, actions=case.actions // workers) for case in cases for workers in (1, 2, 4)}
    alone = tuple(sorted(shares, key=lambda case: (case.encoder, case.actions)))
    settings = {
        1: replace(usual, alone=alone, numbers=()),
        **{w: replace(usual, cases=cases, crowded=Case(crowd // w)) for w in (2, 4)},
    }
    found: dict[int, list[Found]] = {workers: [] for workers in settings}
    with local(1) as engine:
        for number in range(rounds):
            for workers, setting in settings.items():
                found[workers].append(_measured(engine, workers, setting))
                print(f"  round {number + 1} of {rounds}, {workers} processes", flush=True)
    return _learning_columns(settings, found)


def _measured(engine: Any, workers: int, setting: Setting) -> Found:
    from _together import measure

    outcome: Found = engine.train(measure, workers, common=setting)
    return outcome


def _learning_columns(settings: dict[int, Setting], found: dict[int, list[Found]]) -> dict[str, Columns]:
    """The quickest of all rounds."""

    def best(workers: int, series: str) -> list[float]:
        return [float(number) for number in np.min([getattr(one, series) for one in found[workers]], axis=0)]

    alone, several = settings[1].alone, [workers for workers in settings if workers > 1]
    seconds = dict(zip(alone, best(1, "alone"), strict=True))
    crowded = {workers: settings[workers].crowded for workers in several}
    steps: Columns = {
        name: [] for name in ("workers", "K", "encoder", "reduced", "modelled", "messages", "seconds", "peak_bytes")
    }
    for workers in several:
        one, times = found[workers][0], best(workers, "steps")
        for place, case in enumerate(settings[workers].cases):
            peak = min(other.peak for other in found[workers])
            told = (
                workers,
                case.actions,
                int(case.encoder),
                one.reduced[place],
                one.modelled[place],
                one.messages[place],
            )
            for name, value in zip(steps, (*told, times[place], peak), strict=True):
                steps[name].append(value)
    return {
        "alone": {
            "K": [case.actions for case in alone],
            "encoder": [int(case.encoder) for case in alone],
            "seconds": list(seconds.values()),
        },
        "crowd": {
            "workers": list(several),
            "seconds": [min(one.crowded for one in found[workers]) for workers in several],
            "alone": [seconds[share] for share in crowded.values() if share is not None],
        },
        "reduce": {
            "numbers": list(settings[several[0]].numbers),
            **{f"seconds_{workers}": best(workers, "reductions") for workers in several},
        },
        "steps": steps,
    }


STUDIES: dict[str, Study] = {
    "fold-rows": on_folder("fold-rows", fold_by_rows),
    "fold-shards": on_folder("fold-shards", fold_by_shards),
    "fold-workers": on_folder("fold-workers", fold_by_workers),
    "evaluate": on_folder("evaluate", evaluate_by_rows),
    "add": Study(run_add, None, ("add",)),
    "learning": Study(run_learning, "torch", ("alone", "crowd", "reduce", "steps")),
}
QUICK = Sizes(
    rows=(2_000, 4_000), actions=500, dim=3, shard_rows=(2_000, 1_000), workers=(1, 2), added=(100, 200), evaluated=2_000,
    policy_actions=20, part=1_000, group=500, turns=1,
)  # fmt: skip


def figures_of(stored: dict[str, Any]) -> Figures:
    """What the goals speak of, and the model's largest errors."""
    studies = stored["studies"]
    figures: Figures = {}
    if "fold-rows" in studies:
        rows = studies["fold-rows"]
        figures |= {
            "ray_fold_over_local": rows["ray_over_local"][-1],
            "ray_fold_rows": rows["n"][-1],
            "ray_fold_s": rows["ray"][-1],
            "local_fold_s": rows["local"][-1],
            "ray_fold_difference": max(rows["difference"]),
        }
    if "evaluate" in studies:
        figures["ray_evaluate_over_local"] = studies["evaluate"]["ray_over_local"][-1]
    if "fold-workers" in studies:
        figures["ray_worker_peak_mb"] = max(studies["fold-workers"]["peak_bytes"]) / 1e6
    if "steps" in studies:
        from _sizing import checks

        steps = studies["steps"]
        figures["step_numbers_beyond_model"] = int(np.abs(np.subtract(steps["reduced"], steps["modelled"])).max())
        for workers in sorted(set(steps["workers"])):
            errors = [abs(one.error) for one in checks(stored) if one.workers == workers]
            figures[f"step_{workers}_model_error"] = max(errors)
    return figures


def rounded(columns: dict[str, Columns]) -> dict[str, Columns]:
    """Four digits of whatever was measured."""
    return {
        name: {
            series: [float(f"{value:.4g}") if isinstance(value, float) else value for value in values]
            for series, values in study.items()
        }
        for name, study in columns.items()
    }


def store(path: Path, studies: dict[str, Columns]) -> None:
    """Put studies beside those that are stored already."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"studies": {}}
    stored["studies"] |= studies
    names = [name for study in STUDIES.values() for name in study.makes]
    ordered = {name: stored["studies"][name] for name in names if name in stored["studies"]}
    head = {
        "command": "python benchmarks/distributed.py --store", "versions": versions("numpy", "torch", "ray"),
        "processor": processor(), "cores": os.cpu_count() or 1,
    }  # fmt: skip
    path.write_text(_on_one_line(json.dumps({**head, "studies": ordered}, indent=1)) + "\n", encoding="utf-8")


def write_page(docs: Path) -> None:
    """The page's tables from the stored file."""
    from _sizing_page import filled

    stored = json.loads((docs / FILE).read_text(encoding="utf-8"))
    page = docs / "sizing.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), stored), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and store or write what is asked for."""
    parser = argparse.ArgumentParser(description="Work in several processes; ends with one line of JSON.")
    parser.add_argument("--only", action="append", choices=list(STUDIES), metavar="STUDY")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--store", action="store_true", help="put what was measured into docs/sizing.json")
    parser.add_argument("--write", action="store_true", help="make docs/sizing.md's tables from docs/sizing.json")
    parser.add_argument("--list", action="store_true", help="name the studies")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{name:<14} {first_line(study.run)}" for name, study in STUDIES.items()))
        return
    if options.write:
        write_page(DOCS)
        return
    studies: dict[str, Columns] = {}
    with tempfile.TemporaryDirectory(prefix="manyarms-") as room:
        for name in options.only or STUDIES:
            study = STUDIES[name]
            if not study.possible:
                print(f"{name}: left out, {study.needs} is not installed")
                continue
            print(f"{name}: {first_line(study.run)}", flush=True)
            found = rounded(study.run(Path(room), QUICK if options.quick else Sizes(), options.quick))
            for columns in found.values():
                print("".join(f"  {series:<14} {values}\n" for series, values in columns.items()), flush=True)
            studies |= found
            if options.store and not options.quick:
                store(DOCS / FILE, found)
    figures = figures_of({"studies": studies})
    for figure, value in figures.items():
        print(f"  {figure:<42} {value:>14,.4g}  {verdict(figure, value)}".rstrip())
    print(as_json(figures))


if __name__ == "__main__":
    main()

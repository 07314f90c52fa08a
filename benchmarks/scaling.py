"""How cost grows with every size, measured over decades, with exponents fitted: docs/costs.md is made of it.

python benchmarks/scaling.py                      everything, some minutes; prints the tables, stores nothing
python benchmarks/scaling.py --only actions       one study (repeatable); --list names them
python benchmarks/scaling.py --quick              the smallest sizes only
python benchmarks/scaling.py --store              what was measured goes into docs/costs.json, beside other studies
python benchmarks/scaling.py --write              measures nothing: tables and pictures of docs/costs.md from docs/costs.json
"""

from __future__ import annotations

import os

# one thread for everybody, and before numpy is loaded
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import gc
import importlib.metadata
import json
import platform
import time
from pathlib import Path
from typing import Any

from _report import as_json
from _scaling import STUDIES, Study
from _scaling_page import Stored, exponents_table, filled, fits, limits_table
from _scaling_pictures import pictures

DOCS = Path(__file__).parents[1] / "docs"
FILE = "costs.json"


PASSES, SOON = 3, 4.0  # how often a size is measured, if that takes no more seconds than this


def measured(name: str, study: Study, *, quick: bool) -> dict[str, list[float | int | None]]:
    """The numbers of a study: its sizes, and a list for each series, None where a size is too large for one.

    Medians of many calls; of three passes over the sizes the smallest, since a neighbour may slow a whole moment down.
    """
    values = study.quick if quick else study.values
    best: dict[int, dict[str, float]] = {value: {} for value in values}
    took: dict[int, float] = {}
    for _ in range(1 if quick else PASSES):
        for value in values:
            if took.get(value, 0.0) > SOON:
                continue
            start = time.perf_counter()
            for series, number in study.run(value).items():
                best[value][series] = min(number, best[value].get(series, number))
            gc.collect()
            if value not in took:
                print(f"  {name}, {study.variable} = {value:,}: {time.perf_counter() - start:.1f} s", flush=True)
            took[value] = time.perf_counter() - start
    columns: dict[str, list[float | int | None]] = {study.variable: list(values)}
    for series in study.series:
        numbers = [best[value].get(series) for value in values]
        columns[series] = [None if number is None else float(f"{number:.4g}") for number in numbers]
    return columns


def processor() -> str:
    """What kind of processor this is, and no more."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    kinds = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{kinds[0] if kinds else platform.processor() or 'a processor'}, {platform.machine()}"


def versions(*packages: str) -> dict[str, str]:
    """Of Python and of some packages; those that do the arithmetic, unless named."""
    found = {"Python": platform.python_version()}
    for name in packages or ("numpy", "torch"):
        try:
            found[name] = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def store(path: Path, studies: dict[str, Any]) -> None:
    """Put studies beside those that are stored already."""
    stored: Stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"studies": {}}
    stored["studies"] |= studies
    ordered = {name: stored["studies"][name] for name in STUDIES if name in stored["studies"]}
    head = {"command": "python benchmarks/scaling.py --store", "versions": versions(), "processor": processor()}
    lines = json.dumps({**head, "studies": ordered}, indent=1)
    path.write_text(_on_one_line(lines) + "\n", encoding="utf-8")


def _on_one_line(text: str) -> str:
    """Lists of numbers without line breaks."""
    out, inside = [], False
    for line in text.splitlines():
        stripped = line.strip()
        out.append(
            (" " if inside and stripped not in ("]", "],") else "") + stripped
            if inside
            else ("\n" if out else "") + line
        )
        inside = (inside or stripped.endswith("[")) and stripped not in ("]", "],")
    return "".join(out)


def write(docs: Path) -> None:
    """The page's tables and pictures from the stored file."""
    stored: Stored = json.loads((docs / FILE).read_text(encoding="utf-8"))
    page = docs / "costs.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), stored), encoding="utf-8")
    for name, picture in pictures(stored).items():
        (docs / "pictures" / name).write_text(picture, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and store or write what is asked for."""
    parser = argparse.ArgumentParser(description="How cost grows with every size.")
    parser.add_argument("--only", action="append", choices=list(STUDIES), metavar="STUDY")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes only")
    parser.add_argument("--store", action="store_true", help="put what was measured into docs/costs.json")
    parser.add_argument(
        "--write", action="store_true", help="make docs/costs.md's tables and pictures from docs/costs.json"
    )
    parser.add_argument("--list", action="store_true", help="name the studies")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{name:<16} {study.variable}: {study.setting}" for name, study in STUDIES.items()))
        return
    if options.write:
        write(DOCS)
        return
    studies = {}
    for name in options.only or STUDIES:
        if not STUDIES[name].possible:
            print(f"{name}: left out, {STUDIES[name].needs} is not installed")
            continue
        studies[name] = measured(name, STUDIES[name], quick=options.quick)
        if options.store and not options.quick:
            store(DOCS / FILE, {name: studies[name]})
    stored: Stored = {"studies": studies}
    print("\n" + exponents_table(stored) + "\n\n" + limits_table(stored) + "\n")
    print(
        as_json(
            {
                f"{study}_{series}_exponent".replace("-", "_"): one.exponent
                for (study, series), one in fits(stored).items()
            }
        )
    )


if __name__ == "__main__":
    main()

"""Runs the tests as other machines would: other instruction sets, other numbers of threads, a busy machine.

python tools/portable.py                      the folders whose tests compare numbers, in every configuration
python tools/portable.py --all                every test
python tools/portable.py --only plain -- tests/beliefs -x        one configuration; what follows -- goes to pytest

A sum in floating point depends on the order of its terms, and so on the width of the registers, on fused multiplication and on
the number of threads. OpenBLAS, NumPy, PyTorch, MKL and oneDNN each choose their kernels for the processor they find, and each
can be told to take those of another. A test that passes only with one choice has a tolerance that was read off one machine.

The output of each run is kept in out/portable; the exit code is 1 where a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out" / "portable"
# tests that compare numbers; the others open files, read arguments and make pages
NUMERICAL = (
    "agents", "beliefs", "certificates", "checks", "estimators", "evaluation", "learning", "policies", "priors", "rewards",
    "theory", "weights",
)  # fmt: skip
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# in an interpreter of its own, since NumPy has made its choice once it is imported
FEATURES_OF_NUMPY = """
import json
from numpy._core import _multiarray_umath as core
print(json.dumps([name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]))
"""


@dataclass(frozen=True)
class Configuration:
    """A machine to imitate: an environment, which of NumPy's kernels to leave out, and how busy it is."""

    about: str
    environment: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # how the names of NumPy's features begin; "" is all of them
    threads: int = 1
    busy: int = 0  # processes that do nothing but turn
    needs: str | None = None  # a flag of the processor


WIDE = ("AVX512", "X86_V4")  # older NumPy names the instructions, newer ones the level of the processor
CONFIGURATIONS = {
    "haswell": Configuration(
        "AVX2 and fused multiplication everywhere",
        {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
        without=WIDE,
    ),
    "zen": Configuration("OpenBLAS as on AMD's Zen", {"OPENBLAS_CORETYPE": "Zen"}),
    "skylakex": Configuration("OpenBLAS with AVX-512", {"OPENBLAS_CORETYPE": "SkylakeX"}, needs="avx512f"),
    "plain": Configuration(
        "no AVX and no fused multiplication anywhere: SSE only",
        {
            "OPENBLAS_CORETYPE": "Prescott",
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "MKL_CBWR": "COMPATIBLE",
        },
        without=("",),
    ),
    "threads": Configuration("two threads in every library", threads=2),
    "busy": Configuration("four processes beside the tests that take all the time they get", busy=4),
}


def features_of_the_processor() -> set[str]:
    """The processor's flags, where Linux tells them."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":", 1)[1].split()}


def disabled(prefixes: Sequence[str]) -> str:
    """The features that this NumPy can leave out and this processor has, those that begin so (others would be refused)."""
    # asked as if nothing were disabled yet: what the caller's environment leaves out would be missing from the answer
    bare = {name: value for name, value in os.environ.items() if name != "NPY_DISABLE_CPU_FEATURES"}
    answer = subprocess.run(
        [sys.executable, "-c", FEATURES_OF_NUMPY], capture_output=True, text=True, check=True, env=bare
    )
    return " ".join(name for name in json.loads(answer.stdout) if name.startswith(tuple(prefixes)))


def environment_of(configuration: Configuration) -> dict[str, str]:
    """What the tests' process finds around it."""
    out = {**os.environ, **dict.fromkeys(THREADS, str(configuration.threads)), **configuration.environment}
    names = disabled(configuration.without) if configuration.without else ""
    if names:
        out["NPY_DISABLE_CPU_FEATURES"] = names
    return out


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Processes that turn until the tests are done."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def run(name: str, arguments: Sequence[str], workers: int) -> tuple[int, str, list[str]]:
    """One configuration: pytest's exit code, its last line, and the tests that failed."""
    configuration = CONFIGURATIONS[name]
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", *arguments]
    if workers > 1:
        command += ["-n", str(workers), "--dist", "worksteal"]
    OUT.mkdir(parents=True, exist_ok=True)
    with load(configuration.busy), (OUT / f"{name}.txt").open("w") as output:
        environment = environment_of(configuration)
        code = subprocess.run(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT).returncode
    lines = (OUT / f"{name}.txt").read_text(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR "))]
    return code, lines[-1] if lines else "", failed


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run the tests as other machines would.")
    parser.add_argument("--only", action="append", choices=list(CONFIGURATIONS), help="this configuration (repeatable)")
    parser.add_argument("--all", action="store_true", help="every test, not only those that compare numbers")
    parser.add_argument("--list", action="store_true", help="name the configurations")
    parser.add_argument("--workers", type=int, default=2, help="processes for the tests")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, in place of the folders")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name:<10} {configuration.about}" for name, configuration in CONFIGURATIONS.items()))
        return 0
    folders = [f"tests/{name}" for name in NUMERICAL if (ROOT / "tests" / name).is_dir()]
    arguments = options.pytest or ([] if options.all else folders)
    flags, worst = features_of_the_processor(), 0
    for name in options.only or CONFIGURATIONS:
        configuration = CONFIGURATIONS[name]
        print(f"{name:<10} {configuration.about}", flush=True)
        if configuration.needs and configuration.needs not in flags:
            print(f"{'':<10} left out: this processor does not have {configuration.needs}")
            continue
        code, last, failed = run(name, arguments, max(1, options.workers // configuration.threads))
        print("\n".join(f"{'':<10} {line}" for line in [last, *failed]), flush=True)
        worst = max(worst, code)
    return int(worst != 0)


if __name__ == "__main__":
    sys.exit(main())

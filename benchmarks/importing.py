"""What importing manyarms costs over importing NumPy, in CPU seconds of a fresh interpreter.

    python benchmarks/importing.py [--turns 15]

Ends with one line of JSON. Every turn starts one interpreter a step, one after the other; a figure is the median over the turns
of the difference within a turn. Bytecode is written in an extra first turn, as an installation has it, into a folder of its own.

- `import_numpy_s`: NumPy alone, which everything else is measured over;
- `import_scipy_special_s`: SciPy's special functions, without which no agent can draw: the floor of what follows;
- `import_manyarms_s`: `import manyarms`, which loads nothing else;
- `import_first_use_s` (goal: at most 0.3): `ma.LinTS` and `ma.open_log` as well; `import_first_use_over_numpy`: over NumPy's own;
- `import_evaluate_s`: `ma.evaluate` and `ma.certify` as well.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

GOAL = ("import_first_use_s", 0.3)

STEPS = {
    "numpy": "import numpy",
    "scipy_special": "import numpy, scipy.special",
    "manyarms": "import numpy, manyarms",
    "first_use": "import numpy, manyarms; manyarms.LinTS, manyarms.open_log",
    "evaluate": "import numpy, manyarms; manyarms.LinTS, manyarms.open_log, manyarms.evaluate, manyarms.certify",
}

TIMED = "import time; start = time.process_time(); {}; print(time.process_time() - start)"


def seconds(step: str, bytecode: str) -> float:
    """CPU seconds that the imports of a step take in an interpreter of their own."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    given |= {"PYTHONPYCACHEPREFIX": bytecode, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", TIMED.format(STEPS[step])], env=given, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def measure(turns: int) -> dict[str, float]:
    """The figures by name."""
    with tempfile.TemporaryDirectory() as bytecode:
        for step in STEPS:
            seconds(step, bytecode)
        taken = [{step: seconds(step, bytecode) for step in STEPS} for _ in range(turns)]
    figures = {"import_numpy_s": statistics.median(turn["numpy"] for turn in taken)}
    for step in list(STEPS)[1:]:
        figures[f"import_{step}_s"] = statistics.median(turn[step] - turn["numpy"] for turn in taken)
    ratio = statistics.median((turn["first_use"] - turn["numpy"]) / turn["numpy"] for turn in taken)
    return figures | {"import_first_use_over_numpy": ratio}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and end with one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=15)
    figures = measure(parser.parse_args(arguments).turns)
    name, most = GOAL
    for figure, value in figures.items():
        goal = f"  goal <= {most:g}, {'met' if value <= most else 'MISSED'}" if figure == name else ""
        print(f"  {figure:<30} {value:8.3f}{goal}")
    print(json.dumps({figure: round(value, 4) for figure, value in figures.items()}))


if __name__ == "__main__":
    main()

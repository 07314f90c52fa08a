"""Pictures of experiments for the manual, with coordinates of one decimal: smaller, and nobody sees it.

.venv/bin/manyarms reproduce dts-rules --out out/dts-rules
.venv/bin/python docs/pictures/make_shortened.py out/dts-rules/figures/own.svg dts_rules
.venv/bin/manyarms reproduce drift --out out/drift
.venv/bin/python docs/pictures/make_shortened.py out/drift/figures/overview.svg drift
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def shortened(path: str) -> str:
    """Coordinates of one decimal, and no letter for a line after a line."""
    out, before = [], ""
    for step in re.sub(r"(\.\d)\d+", r"\1", path).replace(".0 ", " ").splitlines():
        letter = step.strip()[:1]
        out.append(step.strip()[2:] if letter == "L" and before in "ML" else step.strip())
        before = letter
    return " ".join(out)


def main() -> None:
    """Shorten the paths and write the picture beside this file."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    short = re.sub(r'(?<= d=")[^"]+', lambda path: shortened(path.group()), text)
    short = re.sub(r"\n\s+", "\n", short)
    Path(__file__).with_name(f"{sys.argv[2]}.svg").write_text(short, encoding="utf-8")


if __name__ == "__main__":
    main()

"""What docs/drift.md says of costs is what benchmarks/README.md has: the worst of the agents, for each way to forget."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ("drift", "discount", "window", "knowledge_gradient")


def test_the_costs_of_forgetting_are_those_that_were_measured() -> None:
    page = (ROOT / "docs" / "drift.md").read_text(encoding="utf-8")
    measured = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = [
        [float(cell) for cell in line.split("|")[2:6]]
        for line in page.splitlines()
        if re.match(r"\| (LinTS|HierTS|meTS) \(", line)
    ]
    assert len(rows) == 3
    for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True):
        found = re.search(rf"^\| `{name}_1e6_over_static` \| ([0-9.]+) \|", measured, re.MULTILINE)
        assert found is not None, name
        assert abs(max(column) - float(found[1])) <= 0.05, name  # the page rounds

"""The demonstration, `manyarms demo`: the package's main jobs, a part each.

demo          the parts in order, and the report
catalogue     Thompson sampling over a catalogue of 100,000 items
diffusion     a prior pre-trained on item embeddings: where it gains, and where not
learning      policies learned from a log, in two worlds with different winners
safe          what can be promised of a learned policy
parts         what the parts share
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from manyarms.cli.commands import COMMANDS


@COMMANDS.register("demo")
def show_demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and figures; created if absent.")] = Path(
        "out/demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """A tour of the package: deciding, learning and certifying, each within a minute on two cores.

    A catalogue of 100,000 items: meTS against LinTS, LinUCB and HierTS. A prior learned from embeddings: where dTS gains over
    LinTS, and where not. A log of 50,000 items: policies learned from it by IPS and by cLPI, in two worlds with different
    winners, and their true values. Is it safe to ship: certificates beside the truth.

    Prints tables and writes OUT/report.html, a self-contained page with curves, the Python code behind them,
    and next steps; figures go to OUT/figures.

    Examples:

      manyarms demo
      manyarms demo --seed 7 --out out/demo-7

    Next: manyarms reproduce --list
    """
    from manyarms.cli.demo import demo as demonstration

    demonstration.run(out, seed=seed, console=Console())


__all__ = ["show_demo"]

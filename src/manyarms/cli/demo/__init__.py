"""The demonstration, `manyarms demo`: the package's main jobs, a part each.

demo          the parts in order, and the report
catalogue     Thompson sampling over a catalogue of 100,000 items
diffusion     a prior pre-trained on item embeddings
learning      policies learned from a log
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
    out: Annotated[Path, typer.Option(help="Folder for report.html and pictures; made if absent.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws another catalogue.")] = 0,
) -> None:
    """Show the main jobs, each within a minute on two cores.

    A catalogue of 100,000 items: meTS against LinTS, LinUCB and HierTS. A prior learned from embeddings: dTS. A log of 100,000
    items: policies learned from it by IPS and cLPI, and what they are truly worth.

    Prints tables and writes [bold]OUT/report.html[/bold], one file with curves, the lines of Python behind them, and what to try
    next; pictures go to OUT/figures.

    [bold]Examples[/bold]

      manyarms demo

      manyarms demo --seed 7 --out out/demo-7

    [bold]Next[/bold]: manyarms reproduce --list
    """
    from manyarms.cli.demo import demo as demonstration

    demonstration.run(out, seed=seed, console=Console())


__all__ = ["show_demo"]

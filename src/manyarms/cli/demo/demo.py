"""All parts of the demonstration in order, and the report; each part ends within a minute on two cores."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from manyarms import __version__
from manyarms._base import html as report
from manyarms._base.files import require_folder, write_text_atomically
from manyarms.cli._text import say
from manyarms.cli.demo.catalogue import large_catalogue
from manyarms.cli.demo.diffusion import diffusion_prior
from manyarms.cli.demo.learning import offline_learning
from manyarms.cli.demo.parts import Part
from manyarms.cli.demo.safe import safe_to_ship
from manyarms.engine import cores

PARTS: tuple[Part, ...] = (large_catalogue, diffusion_prior, offline_learning, safe_to_ship)


def run(out: Path | str, *, seed: int = 0, console: Console | None = None) -> Path:
    """Run all parts; the path of the report."""
    console = console or Console()
    require_folder("--out", out, "report.html", folders=("figures",))
    started = time.monotonic()
    sections = [part(console, seed, Path(out)) for part in PARTS]
    answers = [answer for section in sections for answer in section.answers]
    blocks = [report.card("What came out", answers, "open")] if answers else []
    for section in sections:
        blocks += section.html()
    facts = {
        "seed": str(seed),
        "time": f"{time.monotonic() - started:.0f} s on {cores()} cores",
        "versions": f"manyarms {__version__}, Python {platform.python_version()}, numpy {np.__version__}",
    }
    blocks += [report.heading("How this was made"), report.facts(facts)]
    path = Path(out) / "report.html"
    about = "What one run of manyarms demo measured on this machine."
    write_text_atomically(path, report.page("manyarms: a demonstration", about, *blocks))
    say(console, f"report: {path}")
    say(console, "next: make serve (or manyarms serve --demo): decisions over HTTP, with a live dashboard")
    return path


__all__ = ["PARTS", "run"]

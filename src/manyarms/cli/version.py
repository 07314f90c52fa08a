"""`manyarms version`: what is installed."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from rich.console import Console
from rich.table import Table

from manyarms import __version__
from manyarms.cli._text import plain
from manyarms.cli.commands import COMMANDS

# what each optional part of the package needs
EXTRAS = {
    "experiments": ("pyarrow", "matplotlib", "scikit-learn"),
    "frames": ("pandas", "polars"),
    "torch": ("torch",),
    "faiss": ("faiss-cpu",),
    "sklearn": ("scikit-learn", "skops"),
    "postgresql": ("psycopg",),
}


@COMMANDS.register("version")
def version() -> None:
    """Show the versions of the package and its dependencies, and which extras are installed."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("manyarms", __version__)
    table.add_row("python", platform.python_version())
    for package in ("numpy", "scipy"):
        table.add_row(package, _version(package))
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if _version(package) is None]
        present = ", ".join(f"{package} {_version(package)}" for package in packages if package not in missing)
        hint = f"missing {', '.join(missing)}: pip install 'manyarms[{extra}]'" if missing else ""
        table.add_row(plain(f"[{extra}]"), plain("; ".join(filter(None, (present, hint)))))
    data = os.environ.get("MANYARMS_DATA")
    table.add_row("MANYARMS_DATA", plain(data) if data else "not set (MovieLens experiments use made-up ratings)")
    Console().print(table)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


__all__ = ["version"]

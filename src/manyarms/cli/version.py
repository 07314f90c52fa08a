"""`manyarms version`: what is installed."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from manyarms import __version__
from manyarms.cli import options
from manyarms.cli.commands import COMMANDS

# what each optional part of the package needs
EXTRAS = {
    "experiments": ("pyarrow", "matplotlib", "scikit-learn"),
    "frames": ("pandas", "polars"),
    "torch": ("torch",),
    "faiss": ("faiss-cpu",),
    "sklearn": ("scikit-learn", "skops"),
    "postgresql": ("psycopg",),
    "service": ("fastapi", "uvicorn", "orjson", "prometheus-client", "cryptography", "threadpoolctl"),
    "client": ("httpx", "cryptography"),
}


@COMMANDS.register("version")
def version() -> None:
    """Show the versions of the package and its dependencies, and which extras are installed."""
    rows = {"manyarms": __version__, "python": platform.python_version()}
    rows |= {package: _version(package) or "missing" for package in ("numpy", "scipy")}
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if _version(package) is None]
        present = ", ".join(f"{package} {_version(package)}" for package in packages if package not in missing)
        hint = f"missing {', '.join(missing)}: pip install 'manyarms[{extra}]'" if missing else ""
        rows[f"[{extra}]"] = "; ".join(filter(None, (present, hint)))
    rows["MANYARMS_DATA"] = os.environ.get("MANYARMS_DATA") or "not set (MovieLens experiments use made-up ratings)"
    options.say(options.facts("", rows).lstrip("\n"))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


__all__ = ["version"]

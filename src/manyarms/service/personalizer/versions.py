"""Which version of Personalizer's interface a request speaks: by its path (v1.0, v1.1-preview.n), or by ?api-version=."""

from __future__ import annotations

PREFIX = "/personalizer"
STABLE = "v1.0"
PREVIEW = "2022-09-01-preview"
IN_PATHS = ("v1.1-preview.1", "v1.1-preview.2", "v1.1-preview.3")
"""Older previews, which have their version in the path: the calls of an application are those of the newest one."""


def is_stable(path: str) -> bool:
    """Whether a path is one of the stable version's."""
    return path.startswith(f"{PREFIX}/{STABLE}/") or path == f"{PREFIX}/{STABLE}"


__all__ = ["IN_PATHS", "PREFIX", "PREVIEW", "STABLE", "is_stable"]

"""The colours, dashes and markers of every figure, in one place.

Okabe and Ito's colours, which are told apart with any kind of colour vision; no figure relies on them alone: curves differ in
dashes and markers too. On a dark page the same colours are lighter. Black and greys are left for text and axes.
"""

from __future__ import annotations

import re

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5C00", "#555555")
ON_DARK = ("#56A9DE", "#F08A4B", "#34C79C", "#E3A3C8", "#F3BD4F", "#9CD6F7", "#C9AC55", "#B4B4B4")
DASHES = ("none", "8 4", "2 3", "10 3 2 3", "5 2", "12 3 2 3 2 3", "1 2", "6 2")
MARKERS = ("circle", "square", "triangle", "diamond")

_INK = {"#000000": "var(--ink)", "#1a1a1a": "var(--ink)", "#ffffff": "var(--page)", "#e3e3e3": "var(--rule)"}


_MATPLOTLIB = dict(zip(PALETTE, "osD^vPX*", strict=True))


def marker_of(shade: str) -> str:
    """The marker that matplotlib draws on curves of a colour, so that colours are not needed to tell them apart."""
    return _MATPLOTLIB.get(shade, "o")


def colour(place: int) -> str:
    """The colour of the curve at a place, as CSS: the page says which of the two it is."""
    return f"var(--c{place % len(PALETTE)})"


def style_sheet() -> tuple[str, str]:
    """The declarations of the colours on a light and on a dark page."""
    light, dark = (" ".join(f"--c{i}: {value};" for i, value in enumerate(values)) for values in (PALETTE, ON_DARK))
    return light, dark


def on_page(svg: str) -> str:
    """A drawing whose colours follow the page, light or dark: those of the palette, ink, paper and grid."""
    names = {value.lower(): colour(place) for place, value in enumerate(PALETTE)} | _INK
    pattern = re.compile("|".join(map(re.escape, names)), re.IGNORECASE)
    return pattern.sub(lambda found: names[found[0].lower()], svg)


__all__ = ["DASHES", "MARKERS", "ON_DARK", "PALETTE", "colour", "marker_of", "on_page", "style_sheet"]

"""Pages stand alone: everything escaped, nothing fetched."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from manyarms._base import charts, palette
from manyarms._base import html as report


def test_texts_are_escaped() -> None:
    page = report.page(
        "a < b", "lead & co", report.paragraph("<script>"), report.table(["x"], [["<b>"], [report.Note("&", "<i>")]])
    )
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<i>" not in page


def test_truth_values_are_shown_as_words() -> None:
    html = report.table(["holds"], [[True], [False]])
    assert '<td class="yes">yes</td>' in html
    assert '<td class="no">no</td>' in html


def test_a_chart_is_well_formed_and_names_its_curves() -> None:
    x = np.array([0.0, 10.0, 20.0])
    series = [charts.Series(name, x, x * factor, np.ones(3)) for name, factor in (("a & b", 1.0), ("c", 1.01))]
    root = ElementTree.fromstring(charts.line_chart(series, "round", "regret", title="t"))
    texts = [element for element in root.iter() if element.tag.endswith("text")]
    heights = {element.text: float(element.get("y", "0")) for element in texts if element.get("font-weight") == "600"}
    assert set(heights) == {"a & b", "c"}
    assert abs(heights["a & b"] - heights["c"]) >= 16


@pytest.mark.parametrize("end", [0.003, 1.0, 7.0, 2_000.0, 31_234.0])
def test_ticks_are_few_round_and_inside(end: float) -> None:
    ticks = charts.nice_ticks(end)
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert ticks[-1] <= end * (1 + 1e-9)


def test_drawings_keep_their_ids_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE svg><svg width="72pt" height="36pt" viewBox="0 0 72 36">'
        '<defs><path id="p"/></defs><use href="#p" clip-path="url(#p)"/></svg>'
    )
    svg = report.svg_of(path, "one")
    assert svg.startswith('<svg viewBox="0 0 72 36">')  # as wide as the page
    assert 'id="one-p"' in svg
    assert 'href="#one-p"' in svg
    assert "url(#one-p)" in svg


@pytest.mark.parametrize("name", ["meTS", "dTS, one chain per item", "a curve whose name is of quite unusual length"])
def test_names_of_curves_fit_beside_them(name: str) -> None:
    """Nothing is drawn beyond the picture's width, with 8 pixels for a letter."""
    import re

    x = np.arange(3.0)
    chart = charts.line_chart([charts.Series(name, x, x, 0 * x)], "round", "regret", title="t")
    place = re.search(rf'<text x="([0-9.]+)" [^>]*>{re.escape(name)}</text>', chart)
    assert place is not None and float(place.group(1)) + 8 * len(name) <= charts.WIDTH


def test_colours_follow_the_page(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    shapes = "".join(f'<path style="stroke: {shade.lower()}"/>' for shade in palette.PALETTE)
    path.write_text(f'<svg viewBox="0 0 1 1"><rect style="fill: #ffffff"/>{shapes}<text>#1</text></svg>')
    svg = report.svg_of(path, "one")
    assert "#ffffff" not in svg and "var(--page)" in svg and "<text>#1</text>" in svg
    for place, shade in enumerate(palette.PALETTE):
        assert shade.lower() not in svg and f"stroke: var(--c{place})" in svg
    page = report.page("t", "about")
    for place, shades in enumerate(zip(palette.PALETTE, palette.ON_DARK, strict=True)):
        assert all(f"--c{place}: {shade};" in page for shade in shades)
    assert "prefers-color-scheme: dark" in page and "http" not in page


def _luminance(shade: str) -> float:
    """Relative luminance as the accessibility guidelines (WCAG 2) define it."""
    parts = (int(shade[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_curves_differ_without_their_colours() -> None:
    looks = {(palette.DASHES[i], palette.MARKERS[i % len(palette.MARKERS)]) for i in range(len(palette.PALETTE))}
    assert len(looks) == len(palette.PALETTE) == len({palette.marker_of(shade) for shade in palette.PALETTE})


@pytest.mark.parametrize("shade", palette.ON_DARK)
def test_curves_stand_out_on_a_dark_page(shade: str) -> None:
    assert (_luminance(shade) + 0.05) / (_luminance("#16181b") + 0.05) >= 3


def test_numbers_in_a_table_have_the_same_decimals() -> None:
    html = report.table(["x", "what"], [[0.5, "a"], [0.125, "b"], ["-", "c"]], numbers=["x"])
    assert ">0.500<" in html and ">0.125<" in html and ">-<" in html

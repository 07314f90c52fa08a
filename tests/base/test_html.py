"""Pages stand alone: everything escaped, nothing fetched."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

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
    series = [report.Series(name, x, x * factor, np.ones(3)) for name, factor in (("a & b", 1.0), ("c", 1.01))]
    root = ElementTree.fromstring(report.line_chart(series, "round", "regret", title="t"))
    texts = [element for element in root.iter() if element.tag.endswith("text")]
    heights = {element.text: float(element.get("y", "0")) for element in texts if element.get("font-weight") == "600"}
    assert set(heights) == {"a & b", "c"}
    assert abs(heights["a & b"] - heights["c"]) >= 16


@pytest.mark.parametrize("end", [0.003, 1.0, 7.0, 2_000.0, 31_234.0])
def test_ticks_are_few_round_and_inside(end: float) -> None:
    ticks = report.nice_ticks(end)
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
    assert svg.startswith('<svg style="max-width: 96px" viewBox="0 0 72 36">')
    assert 'id="one-p"' in svg
    assert 'href="#one-p"' in svg
    assert "url(#one-p)" in svg


@pytest.mark.parametrize("name", ["meTS", "dTS, one chain per item", "a curve whose name is of quite unusual length"])
def test_names_of_curves_fit_beside_them(name: str) -> None:
    """Nothing is drawn beyond the picture's 820 pixels, with 8 for a letter."""
    import re

    x = np.arange(3.0)
    chart = report.line_chart([report.Series(name, x, x, 0 * x)], "round", "regret", title="t")
    place = re.search(rf'<text x="([0-9.]+)" [^>]*>{re.escape(name)}</text>', chart)
    assert place is not None and float(place.group(1)) + 8 * len(name) <= 820

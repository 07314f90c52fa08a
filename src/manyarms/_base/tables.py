"""Results as tables: text in a terminal, HTML in a notebook, one line in a list.

    class Outcome(Shown):
        def _table(self) -> Table:
            return Table("2 policies on 1,000 rows", ("policy", "value"), [("old", 0.41), ("new", 0.4375)])

A dataclass that says nothing shows its fields by name. Dataclasses need `repr=False`, or they write a repr of their own.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from html import escape

import numpy as np

from manyarms._base.text import counted, number, shortened

MOST, LEAST = 100, 60  # columns of a terminal that are used, and that are needed
ONE_LINE = 120
NARROWEST = 12  # columns of words that are folded keep so much
FEW = 6  # entries of an array or a list that are shown one by one

Cell = str | int | float | bool | None | np.generic

_NUMBER = re.compile(r"[-+±]?[\d.,]+(e[-+]?\d+)?\s?(%|x|s|ms|MB)?|[-+]?(inf|nan)|-|")
_TABLE_STYLE = "border-collapse: collapse; font-variant-numeric: tabular-nums"
_CELL_STYLE = "text-align: {}; padding: .15em .8em .15em 0; vertical-align: top"


@dataclass(frozen=True)
class Table:
    """A title that says what came out, rows under columns, and what to know about them.

    Without names of columns, rows are names with values. Numbers may be given as numbers: a column gets the same decimals all
    over. `parts` are tables that follow.
    """

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    notes: Sequence[str] = ()
    parts: Sequence[Table] = ()

    def text(self, width: int | None = None) -> str:
        """Lines of at most so many columns; those of the terminal unless said, and 100 at most."""
        if width is None:
            width = max(LEAST, min(MOST, shutil.get_terminal_size((MOST, 24)).columns))
        return "\n".join(self._lines(width))

    def html(self) -> str:
        """A piece of HTML without a style sheet: it takes the colours and letters of what it stands in."""
        return "\n".join(["<div>", *self._html(), "</div>"])

    def _lines(self, width: int) -> list[str]:
        lines = textwrap.wrap(self.title, width, subsequent_indent="  ")
        if self.rows:
            written = [texts_of(column) for column in zip(*self.rows, strict=True)]
            right = [_is_number(column) for column in written]
            head = [list(self.columns)] if any(self.columns) else []
            lines += _aligned([*head, *map(list, zip(*written, strict=True))], right, width)
        for note in self.notes:
            lines += textwrap.wrap(note, width, subsequent_indent="  ")
        for part in self.parts:
            lines += ["", *part._lines(width)]
        return lines

    def _html(self) -> list[str]:
        found = [f"<p><strong>{escape(self.title)}</strong></p>"] if self.title else []
        if self.rows:
            written = [texts_of(column) for column in zip(*self.rows, strict=True)]
            sides = ["right" if _is_number(column) else "left" for column in written]
            if any(self.columns):
                cells = "".join(_element("th", *pair) for pair in zip(self.columns, sides, strict=True))
                found += [f'<table style="{_TABLE_STYLE}"><thead><tr>{cells}</tr></thead><tbody>']
            else:
                found += [f'<table style="{_TABLE_STYLE}"><tbody>']
            for row in zip(*written, strict=True):
                found.append("<tr>" + "".join(_element("td", *pair) for pair in zip(row, sides, strict=True)) + "</tr>")
            found.append("</tbody></table>")
        found += [f"<p>{escape(note)}</p>" for note in self.notes]
        for part in self.parts:
            found += part._html()
        return found


class Shown:
    """What prints as a table, stands in a list as one line, and shows in a notebook as HTML."""

    __slots__ = ()

    def _table(self) -> Table:
        """The table; the fields of a dataclass unless a class has something better."""
        return Table(type(self).__name__, rows=list(_facts(self).items()))

    def _line(self) -> str:
        """What stands between the brackets of the repr."""
        if type(self)._table is Shown._table:
            return ", ".join(f"{name.replace(' ', '_')}={value}" for name, value in _facts(self).items())
        return self._table().title

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({shortened(self._line(), ONE_LINE - len(name) - 2)})"

    def __str__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()


def texts_of(cells: Iterable[Cell]) -> list[str]:
    """The cells of a column as text; numbers that are not whole get the same decimals, where that is readable."""
    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    broken = [cell for cell in cells if isinstance(cell, float)]
    plain = [number(cell) for cell in broken]
    places = max((len(text.partition(".")[2]) for text in plain), default=0)
    even = not any(text.strip("-+")[0] in "in" or "e" in text for text in plain) and places <= 6
    if even and max((abs(cell) for cell in broken), default=0.0) >= 1e6:
        even = False
    return [f"{cell + 0.0:,.{places}f}" if even and isinstance(cell, float) else text_of(cell) for cell in cells]


def text_of(cell: object) -> str:
    """One value for a reader: numbers with digits that count, arrays and lists in short."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return number(cell)
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return " ".join(cell.split("\n"))
    if isinstance(cell, np.ndarray):
        if cell.ndim == 1 and len(cell) <= FEW and cell.dtype.kind in "biuf":
            return f"[{', '.join(text_of(one) for one in cell)}]"
        return (
            f"{' x '.join(f'{size:,}' for size in cell.shape)} {'entries' if cell.dtype.kind in 'OUS' else 'numbers'}"
        )
    if isinstance(cell, Mapping):
        entries = [f"{key}: {text_of(value)}" for key, value in list(cell.items())[:FEW]]
        return ", ".join(entries) + (f" and {len(cell) - FEW:,} more" if len(cell) > FEW else "")
    if isinstance(cell, Sequence | Set) and not isinstance(cell, bytes):
        if len(cell) > FEW:
            return counted(len(cell), "entry", "entries")
        return ", ".join(shortened(text_of(one), ONE_LINE) for one in cell) or "none"
    return shortened(repr(cell), ONE_LINE)


def _facts(value: object) -> dict[str, str]:
    if not is_dataclass(value):
        return {}
    return {field.name.replace("_", " "): text_of(getattr(value, field.name)) for field in fields(value) if field.repr}


def _is_number(column: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(text) for text in column)


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[bool], width: int) -> list[str]:
    """Rows of cells as lines; where they are too wide, columns of words are folded, the widest first."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [place for place, is_right in enumerate(right) if not is_right]
    over = sum(widths) + 2 * (len(widths) - 1) - width
    while words and over > 0 and widths[widest := max(words, key=lambda place: widths[place])] > NARROWEST:
        widths[widest] -= 1
        over -= 1
    lines = []
    for row in rows:
        folded = [
            (textwrap.wrap(cell, size) or [""]) if len(cell) > size else [cell]
            for cell, size in zip(row, widths, strict=True)
        ]
        for line in range(max(map(len, folded))):
            cells = [cell[line] if line < len(cell) else "" for cell in folded]
            placed = [
                cell.rjust(size) if to_right else cell.ljust(size)
                for cell, size, to_right in zip(cells, widths, right, strict=True)
            ]
            lines.append("  ".join(placed).rstrip())
    return lines


def _element(name: str, text: str, side: str) -> str:
    return f'<{name} style="{_CELL_STYLE.format(side)}">{escape(text)}</{name}>'


__all__ = ["Cell", "Shown", "Table", "text_of", "texts_of"]

"""The outcome of an experiment: columns per run, and the tidy table made of them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base.files import write_bytes_atomically
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput, MissingExtra
from manyarms_thesis.harness.spec import Cell

if TYPE_CHECKING:
    import pyarrow as pa

# columns by group of test users: for errors only, no part of the table
BY_GROUP = "_by_group"
Outcomes = Mapping[int, Mapping[str, AnyArray]]
"""What a piece of work leaves: columns by run."""


class Results:
    """Columns by (panel, method, run), with the cells that they came from."""

    def __init__(
        self,
        experiment: str,
        scale: str,
        cells: Sequence[Cell],
        runs: Mapping[tuple[str, str, int], Mapping[str, AnyArray]],
        worlds: Mapping[str, Ints] | None = None,
    ) -> None:
        self.experiment = experiment
        self.scale = scale
        self.cells = {cell.panel: cell for cell in cells}
        self.runs = runs
        self.worlds = worlds or {}  # by panel, the world that each run met, where runs share worlds

    @property
    def variants(self) -> list[str]:
        """The variants of worlds among the panels, "" (as the thesis prints them) first."""
        return sorted(dict.fromkeys(cell.variant for cell in self.cells.values()), key=bool)

    def variant(self, name: str) -> Results:
        """The panels of one variant, by the names that they have without it."""
        chosen = {panel: cell for panel, cell in self.cells.items() if cell.variant == name}
        bare = {panel: panel.removesuffix(f", {name}") if name else panel for panel in chosen}
        return Results(
            self.experiment,
            self.scale,
            [replace(cell, panel=bare[panel]) for panel, cell in chosen.items()],
            {(bare[panel], method, run): values for (panel, method, run), values in self.runs.items() if panel in bare},
            {bare[panel]: met for panel, met in self.worlds.items() if panel in bare},
        )

    @property
    def panels(self) -> list[str]:
        """The panels, in the order of the experiment."""
        return list(self.cells)

    def methods(self, panel: str) -> list[str]:
        """The methods of a panel."""
        return list(self._cell(panel).methods)

    def where(self, **parameters: Any) -> list[str]:
        """Panels whose parameters have these values, in order."""
        return [
            panel
            for panel, cell in self.cells.items()
            if all(cell.parameters.get(name) == value for name, value in parameters.items())
        ]

    def parameter(self, panel: str, name: str) -> Any:
        """A parameter of a panel."""
        return self._cell(panel).parameters[name]

    def levels(self, name: str) -> list[Any]:
        """The values of a parameter over all panels, in rising order."""
        return sorted({cell.parameters[name] for cell in self.cells.values()})

    def varying(self, names: Sequence[str], **fixed: Any) -> dict[str, list[str]]:
        """For each parameter the panels in which it varies while the others have their usual value, in rising order.

        The usual value is the most frequent one; `fixed` restricts the panels.
        """
        among = self.where(**fixed)
        values = {name: [self.parameter(panel, name) for panel in among] for name in names}
        usual = {name: max(set(values[name]), key=values[name].count) for name in names}

        def panels(name: str) -> list[str]:
            found = self.where(**fixed, **{other: usual[other] for other in names if other != name})
            return sorted(found, key=lambda panel: float(self.parameter(panel, name)))

        return {name: panels(name) for name in names}

    def values(self, panel: str, method: str, column: str) -> Array:
        """A column over the runs: (runs,) for a scalar, (runs, n) for an array."""
        cell = self._cell(panel)
        if method not in cell.methods:
            raise InvalidInput("method", repr(method), "one of " + ", ".join(cell.methods))
        values = [np.asarray(self.runs[panel, method, run][column], dtype=np.float64) for run in range(cell.runs)]
        return np.stack(values)

    def final(self, panel: str, method: str, column: str = "regret") -> Array:
        """The last entry of a column for each run."""
        values = self.values(panel, method, column)
        return values if values.ndim == 1 else values[:, -1]

    def table(self) -> pa.Table:
        """One row for each checkpoint of each run."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingExtra("pyarrow", "experiments", "writing results as Parquet") from error
        parameters = list(dict.fromkeys(name for cell in self.cells.values() for name in cell.parameters))
        columns = list(dict.fromkeys(name for run in self.runs.values() for name in run if not name.endswith(BY_GROUP)))
        pieces = []
        for panel, cell in self.cells.items():
            for method in cell.methods:
                for run in range(cell.runs):
                    outcome = self.runs[panel, method, run]
                    length = max((np.size(value) for name, value in outcome.items() if name in columns), default=1)
                    fixed = {"experiment": self.experiment, "scale": self.scale, "panel": panel, "method": method}
                    data: dict[str, Any] = {name: [value] * length for name, value in fixed.items()}
                    data["variant"] = [cell.variant] * length
                    data["run"] = np.full(length, run)
                    data |= {name: [cell.parameters.get(name)] * length for name in parameters}
                    for name in columns:
                        value = outcome.get(name)
                        data[name] = pa.nulls(length) if value is None else np.broadcast_to(value, (length,)).copy()
                    pieces.append(pa.table(data))
        return pa.concat_tables(pieces, promote_options="permissive")

    def write(self, path: Path) -> None:
        """The tidy table as Parquet, written atomically."""
        table = self.table()
        import pyarrow.parquet as parquet

        buffer = io.BytesIO()
        parquet.write_table(table, buffer)
        write_bytes_atomically(path, buffer.getvalue())

    def _cell(self, panel: str) -> Cell:
        if panel not in self.cells:
            raise InvalidInput("panel", repr(panel), "one of " + ", ".join(self.cells))
        return self.cells[panel]


__all__ = ["BY_GROUP", "Outcomes", "Results"]

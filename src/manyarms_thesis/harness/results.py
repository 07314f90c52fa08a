"""The outcome of an experiment: columns per run, and the tidy table made of them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base.files import write_bytes_atomically
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput, MissingExtra
from manyarms_thesis.harness.spec import Cell

if TYPE_CHECKING:
    import pyarrow as pa

Columns = Mapping[str, AnyArray]


class Results:
    """Columns by (panel, agent, run), with the cells that they came from."""

    def __init__(
        self, experiment: str, scale: str, cells: Sequence[Cell], runs: Mapping[tuple[str, str, int], Columns]
    ) -> None:
        self.experiment = experiment
        self.scale = scale
        self.cells = {cell.panel: cell for cell in cells}
        self.runs = runs

    @property
    def panels(self) -> list[str]:
        """The panels, in the order of the experiment."""
        return list(self.cells)

    def agents(self, panel: str) -> list[str]:
        """The agents of a panel."""
        return list(self._cell(panel).agents)

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

    def values(self, panel: str, agent: str, column: str) -> AnyArray:
        """A column over the runs, one row a run."""
        cell = self._cell(panel)
        if agent not in cell.agents:
            raise InvalidInput("agent", repr(agent), "one of " + ", ".join(cell.agents))
        return np.stack([np.asarray(self.runs[panel, agent, run][column]) for run in range(cell.runs)])

    def final(self, panel: str, agent: str, column: str = "regret") -> Array:
        """The last entry of a column for each run."""
        values = self.values(panel, agent, column).astype(np.float64)
        return values if values.ndim == 1 else values[:, -1]

    def table(self) -> pa.Table:
        """One row for each checkpoint of each run."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingExtra("pyarrow", "experiments", "writing results as Parquet") from error
        parameters = list(dict.fromkeys(name for cell in self.cells.values() for name in cell.parameters))
        columns = list(dict.fromkeys(name for run in self.runs.values() for name in run))
        pieces = []
        for panel, cell in self.cells.items():
            for agent in cell.agents:
                for run in range(cell.runs):
                    outcome = self.runs[panel, agent, run]
                    length = max((np.size(value) for value in outcome.values()), default=1)
                    fixed = {"experiment": self.experiment, "scale": self.scale, "panel": panel, "agent": agent}
                    data: dict[str, Any] = {name: [value] * length for name, value in fixed.items()}
                    data["run"] = np.full(length, run)
                    data |= {name: [cell.parameters.get(name)] * length for name in parameters}
                    for name in columns:
                        value = outcome.get(name)
                        data[name] = pa.nulls(length) if value is None else np.broadcast_to(value, (length,)).copy()
                    pieces.append(pa.table(data))
        return pa.concat_tables(pieces, promote_options="permissive")

    def write(self, path: Path) -> None:
        """The tidy table as Parquet, written whole or not at all."""
        table = self.table()
        import pyarrow.parquet as parquet

        buffer = io.BytesIO()
        parquet.write_table(table, buffer)
        write_bytes_atomically(path, buffer.getvalue())

    def _cell(self, panel: str) -> Cell:
        if panel not in self.cells:
            raise InvalidInput("panel", repr(panel), "one of " + ", ".join(self.cells))
        return self.cells[panel]


__all__ = ["Columns", "Results"]

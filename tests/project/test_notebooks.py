"""The notebooks: stored without what they printed, and run from their first cell to their last."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PAGE = ROOT / "docs" / "notebooks.md"


def test_every_notebook_is_on_its_page() -> None:
    assert NOTEBOOKS
    listed = re.findall(r"`(\w+\.ipynb)`", PAGE.read_text(encoding="utf-8"))
    assert sorted(listed) == [notebook.name for notebook in NOTEBOOKS]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_is_stored_but_what_was_written(notebook: Path) -> None:
    """No outputs, no counts of executions, nothing about who opened it; cells have names of their own."""
    stored = json.loads(notebook.read_text(encoding="utf-8"))
    cells = stored["cells"]
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"][0].startswith("# ")
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of the machinery of notebooks; the kernel has filters of its own
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel of its own, on the data that MANYARMS_DATA names or on made-up ones; every picture is drawn."""
    nbformat = pytest.importorskip("nbformat", reason="notebooks are run where nbclient and ipykernel are installed")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    stored = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(
        stored, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    drawn = [
        output
        for cell in stored.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    asked = sum("plt.show()" in cell.source for cell in stored.cells if cell.cell_type == "code")
    assert len(drawn) == asked > 0

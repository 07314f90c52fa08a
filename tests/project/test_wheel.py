"""The wheel, built as a stranger would and installed into an empty environment without any extra.

tools/release_check.py does it, and says what is wrong; `make release-check` looks at the source distribution and the changelog.
"""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow  # two environments, and what pip has to fetch for them
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):  # an empty environment, whatever this one has
        monkeypatch.delenv(name, raising=False)
    check = importlib.import_module("release_check")
    version = check.version_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folder = tmp_path.resolve()
    try:
        _, wheel = check.build(folder)
    except RuntimeError as error:
        if "installing what building needs" in str(error):
            pytest.skip(f"pip reaches nothing to install from: {error}")
        raise
    with zipfile.ZipFile(wheel) as packed:
        assert check.wrong_with_the_wheel(packed.namelist()) == []
    assert check.wrong_in_an_empty_environment(wheel, version, folder) == []

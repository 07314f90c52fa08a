"""Pre-trained priors of these tests in a folder of their own; no data sets, so that nothing is slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from manyarms_thesis.dts import pretrained


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(pretrained.CACHE, str(folder))
        patch.delenv("MANYARMS_DATA", raising=False)
        yield folder

"""Array types used across the package; float64 everywhere a belief is concerned."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

__all__ = ["AnyArray", "Array", "Bools", "Ints"]

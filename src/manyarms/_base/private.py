"""Arrays that belong to one object: what a policy or a log keeps does not change when the caller's array does.

`validate.owned` copies whatever is not read-only and nobody else's already. The two functions here spare the copy where an array
was made for its owner: by a reader of files, or by a conversion to another type.
"""

from __future__ import annotations

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray


def locked(array: AnyArray) -> AnyArray:
    """An array that its maker hands over and writes to no more; a view stays as it is, for its memory has another owner."""
    if type(array) is np.ndarray and array.base is None:
        array.flags.writeable = False
    return array


def kept(array: AnyArray, given: object) -> AnyArray:
    """What was given and became `array`, as its owner keeps it: copied only if the giver may have it too."""
    converted = isinstance(given, np.ndarray) and not np.may_share_memory(array, given)
    return validate.owned(locked(array) if converted or isinstance(given, list | tuple) else array)


__all__ = ["kept", "locked"]

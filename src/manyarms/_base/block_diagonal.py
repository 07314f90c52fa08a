"""Block-diagonal matrices, held as the stack (L, d, d) of their blocks: independent parts need nothing larger than those."""

from __future__ import annotations

from typing import cast

import numpy as np

from manyarms._base.typing import Array


def dense(blocks: Array) -> Array:
    """The whole matrix (L d, L d)."""
    if len(blocks) == 1:
        return cast(Array, blocks[0])
    number, size = blocks.shape[:2]
    whole = np.zeros((number, size, number, size))
    which = np.arange(number)
    whole[which, :, which, :] = blocks
    return whole.reshape(number * size, number * size)


def diagonal_blocks(matrix: Array, number: int) -> Array:
    """The L blocks on the diagonal of a matrix (L d, L d)."""
    size = len(matrix) // number
    return cast(Array, np.einsum("lilj->lij", matrix.reshape(number, size, number, size)).copy())


def blocks_of(matrix: Array, number: int) -> Array | None:
    """The L blocks of a matrix that is zero everywhere else; None where it is not."""
    blocks = diagonal_blocks(matrix, number)
    return blocks if np.count_nonzero(matrix) == np.count_nonzero(blocks) else None


__all__ = ["blocks_of", "dense", "diagonal_blocks"]

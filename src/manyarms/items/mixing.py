"""Mixing weights from what is known of items: categories, or the components of a mixture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.logs.encoding import as_codes
from manyarms.logs.tables import Table
from manyarms.priors.structure import mixture

MOST_CATEGORIES = 10_000  # effects are vectors that a belief learns together: with more, nothing is shared


def texts_among(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of texts."""
    found = tuple(name for name in names if table[name].categories is not None)
    if not found:
        raise InvalidInput(
            "columns", "None", 'the columns of categories, since no feature is a text; or kind="mixture"'
        )
    return found


def categories(fitted: Table, table: Table, names: Sequence[str], separator: str | None) -> tuple[Array, list[str]]:
    """Weights (K, L) of `table`, an effect for every category in `fitted` and one for the others in each column; their names."""
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise InvalidInput("separator", validate.describe(separator), "a text between categories, or None")
    blocks: list[Array] = []
    labels: list[str] = []
    for name in names:
        known = sorted({one for text in _texts(fitted, name)[0] for one in _split(text, separator)})
        if len(known) > MOST_CATEGORIES:
            came = f"{len(known):,} categories in column {name!r}"
            raise InvalidInput("columns", came, f"at most {MOST_CATEGORIES:,}; kind='mixture' finds fewer")
        validate.room("columns", table.rows, 8.0 * (len(known) + 1), "items with so many categories")
        place = {category: index for index, category in enumerate(known)}
        texts, codes = _texts(table, name)
        weights = np.zeros((len(texts) + 1, len(known) + 1))
        for row, text in enumerate(texts):
            for one in _split(text, separator) or [""]:
                weights[row, place.get(one, len(known))] = 1.0
        weights[-1, -1] = 1.0  # the code -1 of what is missing
        blocks.append(weights[codes])
        labels += [f"{name}={category}" for category in known] + [f"{name}: other"]
    joined: Array = np.concatenate(blocks, axis=1)
    return joined / np.sqrt(joined.sum(axis=1, keepdims=True)), labels


def _texts(table: Table, name: str) -> tuple[list[str], Ints]:
    """The distinct texts of a column that are there, and every row's."""
    texts, codes = as_codes(name, table[name])
    used, places = np.unique(codes, return_inverse=True)
    there = [texts[code] for code in used.tolist() if code >= 0]
    return there, places - 1 if len(used) and used[0] < 0 else places


def _split(text: str, separator: str | None) -> list[str]:
    return [text] if separator is None else [part for one in text.split(separator) if (part := one.strip())]


def components(known: Array, found: Array, effects: int, seed: int) -> Array:
    """Probabilities (K, L) of the components of a Gaussian mixture that is fitted to `known`."""
    both = np.concatenate([known, found])
    prior = mixture(both, effects, seed=seed, learned_from=np.arange(len(known)))
    return np.array(prior.weights[len(known) :])


__all__ = ["categories", "components", "texts_among"]

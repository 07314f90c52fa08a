"""Clusters of vectors by k-means."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput, MissingExtra

EXACT = 20_000  # vectors up to which k-means itself is quick; it takes minutes beyond


def k_means(
    vectors: npt.ArrayLike, clusters: int, *, seed: int = 0, others: npt.ArrayLike | None = None
) -> tuple[Ints, Ints]:
    """Labels (K,) of vectors (K, l) by k-means, and those of `others` (m, l): the clusters whose centres are nearest.

    Beyond 20,000 vectors by its variant in small batches. Needs scikit-learn.
    """
    known: Array = validate.as_array("vectors", vectors, (None, None))
    clusters, seed = validate.count("clusters", clusters), validate.seed(seed)
    if clusters > len(known):
        raise InvalidInput("clusters", clusters, f"at most the number of actions, {len(known)}")
    new = None if others is None else validate.rows("others", others, known.shape[1])
    try:
        from sklearn.cluster import KMeans, MiniBatchKMeans  # late: slow to import
    except ImportError as error:
        raise MissingExtra("scikit-learn", "sklearn", "clustering actions") from error
    method = KMeans if len(known) <= EXACT else MiniBatchKMeans
    state = seed if seed < 2**32 else np.random.RandomState(np.random.MT19937(seed))  # scikit-learn takes 32 bits
    model = method(n_clusters=clusters, n_init=3, random_state=state).fit(known)
    labels: Ints = np.asarray(model.labels_, dtype=np.int64)
    if new is None or not len(new):
        return labels, np.empty(0, dtype=np.int64)
    return labels, np.asarray(model.predict(new), dtype=np.int64)


__all__ = ["k_means"]

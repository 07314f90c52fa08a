"""Items: what actions are, beyond their ids; and how that gets into every method.

Catalogue        ids and features of items, from a frame or a file, and the roads: mixing weights, embeddings, clusters, priors,
                 contexts for each action
k_means          clusters of vectors
"""

from __future__ import annotations

from manyarms.items.catalogue import Catalogue
from manyarms.items.clustering import k_means

__all__ = ["Catalogue", "k_means"]

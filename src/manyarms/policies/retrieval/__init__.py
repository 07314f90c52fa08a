"""The best k of many actions by inner product x^T beta_a: exactly, or through an index with its recall measured.

    scan = ExactScan(actions)                        # (K, l), float32 for half the memory and time
    ids, scores = scan.search(queries, k=100)        # (n, k) each, falling; equal scores go to the lowest id
    index = FaissIndex(actions)                      # needs the extra `faiss`
    print(index.recall(queries, k=100))              # on your own queries: recall depends on the data

Policies with an inner-product head reduce their best actions to this search (thesis, Appendix D.4.1). Both classes have
the same two methods. `exclude` leaves actions out: ids (m,) for all queries, or (n, m) for each its own, padded with -1.
"""

from manyarms.policies.retrieval.base import Recall, Retriever
from manyarms.policies.retrieval.exact_scan import ExactScan
from manyarms.policies.retrieval.faiss_index import FaissIndex

__all__ = ["ExactScan", "FaissIndex", "Recall", "Retriever"]

"""Terms of objectives written out: one row of all log-probabilities for each context, in float64, by torch's own softmax."""

from __future__ import annotations

import numpy as np
import torch

from manyarms.estimators import Batch, Terms


def dense_terms(rows, X, log_pi, *, index=None, scores=None, negatives=None, active_only=True):
    """The terms of the rows `index` (all) of a log with contexts X, for log pi (n, K); and the batch."""
    n, K = log_pi.shape
    index = np.arange(n) if index is None else np.asarray(index)
    used = index if rows.active is None or not active_only else index[rows.active[index]]
    ids = rows.ids(used) if callable(rows.ids) else rows.ids[used]
    if rows.negatives:
        ids = np.concatenate([ids, negatives[used]], axis=1)
    ids = torch.as_tensor(ids)
    at = scores if rows.raw_scores else log_pi
    asked = at[used].gather(1, ids.clamp(min=0)).masked_fill(ids < 0, -torch.inf)
    terms = Terms(asked[:, :0] if rows.raw_scores else asked, scores=asked if rows.raw_scores else None)
    if rows.labels is not None:
        inside = torch.as_tensor(rows.labels == rows.wanted[used][:, None])
        terms.group_log_mass = torch.where(inside, log_pi[used], -torch.inf).logsumexp(1)
    if rows.model is not None:
        terms.expectation = (log_pi[used].exp() * torch.as_tensor(rows.model.block(X[used], np.arange(K)))).sum(1)
    columns = {name: torch.as_tensor(column[used]) for name, column in rows.columns.items()}
    return terms, Batch(columns, len(index))


def value_of(objective, log, log_pi, **more):
    """The objective on a whole log."""
    return objective.value(*dense_terms(objective.prepare(log), log.contexts, log_pi, **more))

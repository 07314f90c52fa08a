"""Answers to objectives written out: one row of all log-probabilities for each context, in float64, by torch's own softmax."""

from __future__ import annotations

import numpy as np
import torch

from manyarms.estimators import Answers, Batch


def dense_answers(request, log, log_pi, *, index=None, scores=None, negatives=None, active_only=True):
    """The answers at the rows `index` (all) of a log, for log pi (n, K); and the batch."""
    n, K = log_pi.shape
    index = np.arange(n) if index is None else np.asarray(index)
    used = index if request.active is None or not active_only else index[request.active[index]]
    rows = request.computed(n).rows(used)
    ids = [log.actions[used][:, None]] if rows.logged else []
    ids += [rows.ids] if rows.ids is not None else []
    ids += [negatives[used]] if rows.negatives else []
    ids = torch.as_tensor(np.concatenate([np.empty((len(used), 0), dtype=np.int64), *ids], axis=1))
    at = scores if rows.raw_scores else log_pi
    asked = at[used].gather(1, ids.clamp(min=0)).masked_fill(ids < 0, -torch.inf)
    answers = Answers(scores=asked) if rows.raw_scores else Answers(asked)
    if rows.labels is not None:
        inside = torch.as_tensor(rows.labels == rows.wanted[:, None])
        answers.group_log_mass = torch.where(inside, log_pi[used], -torch.inf).logsumexp(1)
    if rows.model is not None:
        values = torch.as_tensor(rows.model.block(log.contexts[used], np.arange(K)))
        answers.expectation = (log_pi[used].exp() * values).sum(1)
    columns = {name: torch.as_tensor(column) for name, column in rows.columns.items()}
    return answers, Batch(columns, len(index))


def value_of(objective, log, log_pi, **more):
    """The objective on a whole log."""
    return objective.value(*dense_answers(objective.prepare(log), log, log_pi, **more))

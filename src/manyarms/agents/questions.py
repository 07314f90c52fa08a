"""What is asked of a decision: contexts, checked, with the belief and the offer that go with them.

One context for all actions makes one question of a batch, and so does a context per action where every context of the batch has
the same candidates. Where each has candidates or exclusions of its own, each is a question of its own.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import ActionContexts, Array
from manyarms.beliefs import Belief
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.listed import view_of
from manyarms.errors import InvalidInput
from manyarms.logs.filters import Filter, is_each, is_matrix


class Question(NamedTuple):
    """Which of the offered actions, for each context?"""

    belief: Belief
    X: Array
    offer: Offer


def questions(
    belief: Belief,
    x: npt.ArrayLike | None,
    candidates: Filter,
    exclude: Filter,
    action_contexts: ActionContexts | None,
    k: int | None,
) -> tuple[list[Question], bool, int]:
    """Checked: what is asked, whether it is for a single context, and how many actions are wanted."""
    if action_contexts is not None:
        asked, single = _with_action_contexts(belief, x, candidates, exclude, action_contexts)
    elif x is None:
        raise InvalidInput("x", "None", "a context, or `action_contexts`")
    else:
        X, single = belief.contexts(x)
        if is_each(candidates) or is_each(exclude):
            offers = belief.catalogue.offers(candidates, exclude, None if single else len(X))
            asked = [Question(belief, x[None], offer) for x, offer in zip(X, offers, strict=True)]
        else:
            asked = [Question(belief, X, belief.catalogue.offer(candidates, exclude))]
    if k is None:  # no offer is empty
        return asked, single, 1
    number = validate.count("k", k)
    fewest = min(question.offer.total for question in asked)
    if number > fewest:
        raise InvalidInput("k", number, f"at most {fewest}, the number of actions offered")
    return asked, single, number


def _with_action_contexts(
    belief: Belief, x: npt.ArrayLike | None, candidates: Filter, exclude: Filter, action_contexts: ActionContexts
) -> tuple[list[Question], bool]:
    Z = _contexts_of_actions(action_contexts, belief.dim)
    single = isinstance(Z, np.ndarray) and Z.ndim == 2
    number = 1 if single else len(Z)
    if x is not None:
        X, one = belief.contexts(x)
        if (len(X), one) != (number, single):
            came = "one context" if one else f"{len(X)} contexts"
            raise InvalidInput("x", came, "one context" if single else f"{number} contexts, as action_contexts has")
    if not isinstance(Z, np.ndarray) and not is_each(candidates):
        raise InvalidInput("candidates", validate.describe(candidates), "a list for each context of a ragged batch")
    lists = belief.catalogue.lists(candidates, exclude, None if single else number)
    if not (is_each(candidates) or is_each(exclude)):
        together = cast(Array, Z)[None] if single else cast(Array, Z)
        return [Question(*view_of(belief, together, lists[0], whole=candidates is None))], single
    asked = []
    for z, listed in zip(Z, lists, strict=True):
        # a matrix may pick from contexts of all actions
        whole = candidates is None or (is_matrix(candidates) and len(z) == belief.catalogue.size)
        asked.append(Question(*view_of(belief, z[None], listed, whole=whole)))
    return asked, single


def _contexts_of_actions(value: ActionContexts, dim: int) -> Array | list[Array]:
    """(m, d), (n, m, d), or a list of n arrays (m_i, d) whose lengths differ."""
    name, shapes = "action_contexts", f"(m, {dim}), (n, m, {dim}), or a list of n arrays (m_i, {dim})"
    if _is_ragged(value):
        ragged = [validate.as_floats(name, z) for z in cast("list[npt.ArrayLike]", value)]
        for i, z in enumerate(ragged):
            if z.ndim != 2 or z.shape[1] != dim or not len(z):
                raise InvalidInput(name, f"shape {z.shape} in context {i}", f"an array of shape {shapes}")
        return ragged
    Z = validate.as_floats(name, cast(npt.ArrayLike, value))
    if Z.ndim not in (2, 3) or Z.shape[-1] != dim or not Z.size:
        raise InvalidInput(name, f"shape {Z.shape}", f"an array of shape {shapes}")
    return Z


def _is_ragged(value: object) -> bool:
    """Whether it is a list of arrays whose lengths differ."""
    if not (isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim)):
        return False
    if not (len(value) and np.iterable(value[0]) and not isinstance(value[0], str | bytes)):
        return False
    try:
        array = np.asarray(value)
    except ValueError:  # numpy's word for lists of different lengths
        return True
    return bool(array.dtype == object and array.ndim == 1)  # a list of arrays in numpy's clothes


__all__ = ["Question", "questions"]

"""Features of actions and contexts: any JSON, as named values, and as a vector of fixed length.

    {"user": {"device": "mobile", "age": 31}}      user.device=mobile  1        user.age  asinh(31)

Names of nested objects are joined by dots, as `read_dsjson` does. A number counts by its value, or rather asinh of it: the
value itself where it is small, a logarithm where it is large, so that a price does not drown everything else. Texts, and true and
false, are indicators. Lists of texts are sets (tags in any order), lists of numbers are vectors, numbered by position; objects in
lists are merged, as those of `contextFeatures` are. null says nothing.

phi(x, a), the features of action a in context x, has five blocks, each of length about one before it is weighted:

    1                                   the level of all rewards
    context features                    how good the occasion is, whatever is shown
    id of the action                    what is known of this action alone
    features of the action              what is shared by actions that are alike
    context x (id, features)            what is right for whom

Each feature goes to one of `dim` places with a sign, both of them bits of its hash (blake2b, and splitmix64 for pairs): the same
in every process and on every machine. Two features that meet in one place have the same sign or opposite ones alike, so that
scores are as large as without the meeting, on average.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import Array, Ints
from manyarms.logs.hashes import STEP, UInts, mixed
from manyarms.service.personalizer.errors import PersonalizerError

DIM = 256
DEEPEST = 32  # objects in objects
SHORT = 200  # characters of a name whose hash is remembered
MOST_PAIRS = 500_000  # of features that are hashed for one call
# the squared length of each block: together 1
LEVEL, CONTEXT, ACTION_ID, ACTION, PAIRS = 0.1, 0.1, 0.2, 0.2, 0.4

Tokens = dict[str, float]
"""Named features with their values."""


def flattened(objects: Sequence[Any], target: str) -> dict[str, Any]:
    """Columns of a context by the names that `read_dsjson` gives them: numbers, texts, and true and false as 1 and 0."""
    found: dict[str, Any] = {}
    for place, one in enumerate(objects):
        for name, value in _leaves(one, "", f"{target}[{place}]", 0):
            found[name] = float(value) if isinstance(value, bool | int | float) else value
    return found


def _leaves(value: Any, name: str, target: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > DEEPEST:
        raise PersonalizerError(400, "InvalidRankRequest", f"features are nested deeper than {DEEPEST}", target)
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not key.startswith("_"):
                yield from _leaves(item, f"{name}.{key}" if name else key, target, depth + 1)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{name}[{place}]", target, depth + 1)
    elif value is not None:
        yield name, value


def tokens(objects: Sequence[Any], target: str, prefix: str = "") -> Tokens:
    """Named features of a list of objects."""
    found: Tokens = {}
    for place, one in enumerate(objects):
        _collect(one, prefix, f"{target}[{place}]", 0, found)
    return found


def _collect(value: Any, name: str, target: str, depth: int, found: Tokens) -> None:
    if depth > DEEPEST:
        raise PersonalizerError(400, "InvalidRankRequest", f"features are nested deeper than {DEEPEST}", target)
    if isinstance(value, Mapping):
        for key, item in value.items():
            _collect(item, f"{name}.{key}" if name else key, target, depth + 1, found)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            vector = isinstance(item, int | float) and not isinstance(item, bool)
            _collect(item, f"{name}[{place}]" if vector else name, target, depth + 1, found)
    elif isinstance(value, bool):
        found[f"{name}={'true' if value else 'false'}"] = 1.0
    elif isinstance(value, int | float):
        found[name] = _size(value, target)
    elif isinstance(value, str):
        found[f"{name}={value}"] = 1.0


def _size(value: float, target: str) -> float:
    try:
        size = math.asinh(float(value))
    except OverflowError:
        size = math.inf
    if not math.isfinite(size):
        raise PersonalizerError(400, "InvalidRankRequest", "a feature is no number of double precision", target)
    return size


def hash_of(token: str) -> int:
    """64 bits of a feature's name; those of short names are remembered."""
    return _remembered(token) if len(token) <= SHORT else _hash(token)


def _hash(token: str) -> int:
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8, person=b"manyarms-phi1").digest()
    return int.from_bytes(digest, "little")


_remembered = lru_cache(maxsize=1 << 16)(_hash)


def phi(context: Tokens, actions: Sequence[tuple[str, Tokens]], dim: int = DIM) -> Array:
    """Features (m, dim) of actions, each an id and its own features, in a context."""
    pairs = len(context) * sum(len(own) + 1 for _, own in actions)
    if pairs > MOST_PAIRS:
        text = f"{pairs:,} pairs of a context's and an action's feature, at most {MOST_PAIRS:,} are taken"
        raise PersonalizerError(413, "PayloadSizeExceeded", text, "contextFeatures")
    rows, hashes, values = _parts(context, actions)
    places = rows * dim + (hashes % np.uint64(dim)).astype(np.int64)
    flat = np.bincount(places, weights=values * _signs(hashes), minlength=len(actions) * dim)
    return flat.astype(float).reshape(len(actions), dim)


def shares(context: Tokens, name: str, features: Tokens, weights: Array) -> list[tuple[str, float]]:
    """What each feature adds to the score phi(x, a)^T weights, by its name; a pair is called "a^b"."""
    _, hashes, values = _parts(context, [(name, features)])
    place = (hashes % np.uint64(len(weights))).astype(np.int64)
    added = values * _signs(hashes) * weights[place]
    theirs, own = sorted(context), [f"id={name}", *sorted(features)]
    names = ["1", *theirs, *own, *(f"{one}^{other}" for one in theirs for other in own)]
    return list(zip(names, added.tolist(), strict=True))


def _parts(context: Tokens, actions: Sequence[tuple[str, Tokens]]) -> tuple[Ints, UInts, Array]:
    """Everything that actions are known by: which action's, its hash and its value. Features are in the order of their names,
    whatever order they came in."""
    number, rows = len(actions), np.arange(len(actions))
    shared, of_context = _hashed([context], "x:")
    own, of_own = _hashed([features for _, features in actions], "a:")
    counts = np.array([len(features) for _, features in actions], dtype=np.int64)
    owners = np.repeat(rows, counts)
    ids = np.array([hash_of(f"id:{name}") for name, _ in actions], dtype=np.uint64)
    left, whose = np.concatenate([ids, own]), np.concatenate([rows, owners])
    of_left = np.concatenate([np.ones(number), of_own]) * _scale(PAIRS, len(shared) * (counts + 1))[whose]
    return (
        np.concatenate([rows, np.repeat(rows, len(shared)), rows, owners, np.tile(whose, len(shared))]),
        np.concatenate(
            [np.full(number, hash_of("1"), np.uint64), np.tile(shared, number), ids, own, crossed(shared, left)]
        ),
        np.concatenate(
            [
                np.full(number, math.sqrt(LEVEL)),
                np.tile(of_context * _scale(CONTEXT, len(shared)), number),
                np.full(number, math.sqrt(ACTION_ID)),
                of_own * _scale(ACTION, counts)[owners],
                np.outer(of_context, of_left).ravel(),
            ]
        ),
    )


def _hashed(found: Sequence[Tokens], kind: str) -> tuple[UInts, Array]:
    """Features of a kind: their hashes and values, one object after the other."""
    names = [sorted(one) for one in found]
    hashes = np.array([hash_of(kind + name) for some in names for name in some], dtype=np.uint64)
    values = [one[name] for one, some in zip(found, names, strict=True) for name in some]
    return hashes, np.array(values, dtype=float)


def _scale(share: float, numbers: npt.ArrayLike) -> Array:
    """What gives a block of so many features its share of the squared length, if each of them is about 1."""
    scale: Array = np.sqrt(share / np.maximum(1, numbers))
    return scale


def crossed(left: UInts, right: UInts) -> UInts:
    """The hash of each pair."""
    with np.errstate(over="ignore"):
        return mixed(mixed(left + STEP)[:, None] + right[None, :]).ravel()


def _signs(hashes: UInts) -> Array:
    signs: Array = 1.0 - 2.0 * (hashes >> np.uint64(63)).astype(float)
    return signs


__all__ = ["DIM", "Tokens", "crossed", "flattened", "hash_of", "phi", "shares", "tokens"]

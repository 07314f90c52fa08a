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

from manyarms._base.typing import Array
from manyarms.logs.hashes import STEP, UInts, mixed
from manyarms.service.personalizer.errors import PersonalizerError

DIM = 256
DEEPEST = 32  # objects in objects
MOST_PAIRS = 2_000_000  # of features that are hashed for one call
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


@lru_cache(maxsize=1 << 16)
def hash_of(token: str) -> int:
    """64 bits of a feature's name."""
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8, person=b"manyarms-phi1").digest()
    return int.from_bytes(digest, "little")


def phi(context: Tokens, actions: Sequence[tuple[str, Tokens]], dim: int = DIM) -> Array:
    """Features (m, dim) of actions, each an id and its own features, in a context."""
    pairs = len(context) * sum(len(own) + 1 for _, own in actions)
    if pairs > MOST_PAIRS:
        text = f"{pairs:,} pairs of a context's and an action's feature, at most {MOST_PAIRS:,} are taken"
        raise PersonalizerError(413, "PayloadSizeExceeded", text, "contextFeatures")
    shared = _hashed(context, "x:")
    return np.array([placed(*_parts(shared, name, own), dim) for name, own in actions])


def _parts(shared: tuple[UInts, Array], name: str, features: Tokens) -> tuple[UInts, Array]:
    """Hashes and values of everything that an action is known by."""
    hashes, values = shared
    own, own_values = _hashed(features, "a:")
    level = np.array([hash_of("1")], dtype=np.uint64)
    one = np.array([hash_of(f"id:{name}")], dtype=np.uint64)
    pairs = np.outer(values, np.concatenate([[1.0], own_values])).ravel()
    return np.concatenate([level, hashes, one, own, crossed(hashes, np.concatenate([one, own]))]), np.concatenate(
        [
            [math.sqrt(LEVEL)],
            _scaled(values, CONTEXT),
            [math.sqrt(ACTION_ID)],
            _scaled(own_values, ACTION),
            _scaled(pairs, PAIRS),
        ]
    )


def shares(context: Tokens, name: str, features: Tokens, weights: Array) -> list[tuple[str, float]]:
    """What each feature adds to the score phi(x, a)^T weights, by its name; a pair is called "a^b"."""
    hashes, values = _parts(_hashed(context, "x:"), name, features)
    place = (hashes % np.uint64(len(weights))).astype(np.int64)
    added = values * _signs(hashes) * weights[place]
    theirs, own = sorted(context), [f"id={name}", *sorted(features)]
    names = ["1", *theirs, *own, *(f"{one}^{other}" for one in theirs for other in own)]
    return list(zip(names, added.tolist(), strict=True))


def _hashed(found: Tokens, kind: str) -> tuple[UInts, Array]:
    """Features of a kind, by their hashes, in the order of their names, whatever order they came in."""
    names = sorted(found)
    hashes = np.fromiter((hash_of(kind + name) for name in names), np.uint64, len(names))
    return hashes, np.array([found[name] for name in names], dtype=float)


def _scaled(values: Array, share: float) -> Array:
    """Values of a block with its share of the squared length, if each of them is about 1."""
    return values * math.sqrt(share / max(1, len(values)))


def crossed(left: UInts, right: UInts) -> UInts:
    """The hash of each pair."""
    with np.errstate(over="ignore"):
        return mixed(mixed(left + STEP)[:, None] + right[None, :]).ravel()


def placed(hashes: UInts, values: Array, dim: int) -> Array:
    """A vector with each value, signed, at its place."""
    place = (hashes % np.uint64(dim)).astype(np.int64)
    vector: Array = np.bincount(place, weights=values * _signs(hashes), minlength=dim).astype(float)
    return vector


def _signs(hashes: UInts) -> Array:
    signs: Array = 1.0 - 2.0 * (hashes >> np.uint64(63)).astype(float)
    return signs


__all__ = ["DIM", "Tokens", "crossed", "flattened", "hash_of", "phi", "placed", "shares", "tokens"]

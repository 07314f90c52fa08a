"""Pre-trained priors inside experiments: each is trained once, stored on disk, and the same whoever trains it.

A prior is named by what it is trained on (data, size, seed) and by its depth. The first process that needs one trains it, while
others that need the same one wait; later it is read from the cache. The cache is the folder that MANYARMS_CACHE names, or
`manyarms` in the user's folder for caches. Throwing it away costs time and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from manyarms import __version__
from manyarms._base import storage
from manyarms._base.files import writing
from manyarms._base.palette import PALETTE
from manyarms._base.seeds import digest
from manyarms._base.typing import Array
from manyarms.agents import named as agents
from manyarms.beliefs import Linear
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms.priors.pretraining import Pretrained, pretrain
from manyarms.worlds import SwissRoll, World
from manyarms_thesis.harness.movielens import movielens_world
from manyarms_thesis.harness.online import lints, play
from manyarms_thesis.harness.spec import Call, Columns, Run

CACHE = "MANYARMS_CACHE"
# the depth that the thesis found best (Section 4.4.2)
DEPTH = 40
GIVEN_PRIORS = (
    "Runs share a few pre-trainings (preparations): errors are those of worlds and of play, given these pre-trained priors, and "
    "not those of training another."
)


def cache_folder() -> Path:
    """Where pre-trained priors are stored."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manyarms"


# ---- what to train on


def swiss_roll_points(size: int, seed: int) -> Array:
    """Fresh points of the Swiss roll."""
    return SwissRoll(1).sample(size, seed)


def normal_points(size: int, seed: int) -> Array:
    """Draws of N(0, I) in the plane (thesis, Appendix B.6.3)."""
    return np.random.default_rng([seed, 4013]).standard_normal((size, 2))


def movie_vectors(size: int, seed: int, *, source: str, dim: int) -> Array:
    """All movies' vectors of a factorisation (thesis, Section 4.4.2); `size` of them at random, all where there are no more."""
    movies = movielens_world(source=source, actions=2, dim=dim, reward="linear", seed=0).catalogue.movies
    chosen = np.random.default_rng([seed, 1692]).permutation(len(movies))[:size]
    return np.asarray(movies[np.sort(chosen)])


# what a prior may be trained on, by name: functions of a size, a seed and details; a module that needs more adds its own
SOURCES: dict[str, Callable[..., Array]] = {
    "swiss-roll": swiss_roll_points,
    "normal": normal_points,
    "movies": movie_vectors,
}


# ---- training once


@lru_cache(maxsize=8)
def _pretrained(name: str, size: int, depth: int, seed: int, details: tuple[tuple[str, Any], ...]) -> Pretrained:
    told = dict(details)
    training = {key: told.pop(key) for key in ("epochs", "hidden") if key in told}
    if name not in SOURCES:
        raise InvalidInput("data", repr(name), "one of " + ", ".join(SOURCES))
    key = digest([__version__, name, size, depth, seed, dict(details)])[:24]
    folder = cache_folder() / f"{name}-{size}-L{depth}-{key}"
    with only_one(folder):
        try:
            return storage.load(folder, Pretrained)
        except ManyArmsError:  # not there, or damaged
            pass
        made = pretrain(SOURCES[name](size, seed, **told), depth, seed=seed, **training)
        made.save(folder)
        return made


def pretrained(data: str, *, size: int, depth: int = DEPTH, seed: int = 0, **details: Any) -> Pretrained:
    """The prior trained on `size` rows of `data`. details: what the data need to know (dim, source), and epochs and hidden."""
    return _pretrained(data, size, depth, seed, tuple(sorted(details.items())))


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Processes that want the same prior enter one by one; a process that dies lets the next one in."""
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows: two may train the same prior, which is only a waste
        yield
        return
    with writing(folder):
        lock = (folder.parent / f"{folder.name}.lock").open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


# ---- agents with such a prior


def prepared_regret(run: Run) -> Columns:
    """One run of an online cell; agents are also told the problem's seed, by which runs take turns with the pre-trainings."""
    return play(run, preparation=run.problem_seed)[1]


def prepared_regret_of_action_contexts(run: Run) -> Columns:
    """The same where every action has a context of its own in every round."""
    return play(run, preparation=run.problem_seed, action_contexts=True)[1]


def pretrained_dts(
    *,
    world: Any,
    rounds: int,
    seed: int,
    preparation: int,
    prior: Mapping[str, Any],
    preparations: int = 1,
    shared: bool = False,
    first: str | None = None,
    approximation: str = "thesis",
) -> Any:
    """dTS with a pre-trained prior.

    prior: what `pretrained` is called with. preparations: how many pre-trainings, of different seeds and data, runs share.
    shared: one chain for all actions, or one each. first: the rule for Sigma_1 (priors.pretraining), by default what suits it.
    """
    made = pretrained(**prior, seed=preparation % preparations)
    diffusion = made.prior(world.actions, shared, first_covariance=first)
    return agents.dTS(diffusion, Linear(world.noise), approximation=approximation, seed=seed)


def prepared_lints(*, world: World, rounds: int, seed: int, preparation: int) -> Any:
    """LinTS with the world's own moments, which needs no preparation."""
    return lints(world=world, rounds=rounds, seed=seed)


def swiss_world(*, actions: int, noise: float, seed: int) -> SwissRoll:
    """Actions on a Swiss roll."""
    return SwissRoll(actions, noise=noise, seed=seed)


# dTS as a pre-trained prior means it, one chain per action, and as the thesis reads it, one chain for all; and by other rules
OWN, SHARED = "dTS", "dTS, shared chain"
MOMENTS, PARTICLES, SHARED_MOMENTS = "dTS, moments", "dTS, particles", "dTS, shared chain, moments"
LOOKS = {
    SHARED: (PALETTE[5], "--"), MOMENTS: (PALETTE[7], ":"), PARTICLES: (PALETTE[2], "-"), SHARED_MOMENTS: (PALETTE[3], "-."),
}  # fmt: skip
READINGS = (
    "The thesis's latents are shared by all actions. A prior pre-trained on single actions' parameters, like the thesis's, means "
    "one chain per action: that is “dTS” here, and what the thesis says of its pre-trained dTS is judged of it. “dTS, shared "
    "chain” has one chain for all, with Σ₁ as wide as the estimates, which the thesis does not print: the same statements about "
    "it are this project's. One chain for all with the schedule's small Σ₁, as printed, would be sure that all actions are "
    "alike; it is in dts-chains, where it alone counts as the thesis's.",
    "“dTS” and “dTS, shared chain” follow the thesis's rule for evidence. Beside them, not in the thesis: “moments”, a Gaussian "
    "with the mean and covariance of the chain's end (with one chain per action that is LinTS with the pre-trained prior's "
    "moments), and “particles”, a cloud of draws of the prior.",
)


def own_shared_and_lints(prior: Mapping[str, Any], preparations: int) -> dict[str, Call]:
    """The agents of the comparisons with pre-trained priors."""
    told = {"prior": prior, "preparations": preparations}
    return {
        OWN: Call(pretrained_dts, told),
        SHARED: Call(pretrained_dts, {**told, "shared": True}),
        "LinTS": Call(prepared_lints),
        MOMENTS: Call(pretrained_dts, {**told, "approximation": "moments"}),
        PARTICLES: Call(pretrained_dts, {**told, "approximation": "particles"}),
        SHARED_MOMENTS: Call(pretrained_dts, {**told, "shared": True, "approximation": "moments"}),
    }


__all__ = [
    "CACHE",
    "DEPTH",
    "GIVEN_PRIORS",
    "LOOKS",
    "MOMENTS",
    "OWN",
    "PARTICLES",
    "READINGS",
    "SHARED",
    "SHARED_MOMENTS",
    "SOURCES",
    "cache_folder",
    "only_one",
    "own_shared_and_lints",
    "prepared_lints",
    "prepared_regret",
    "prepared_regret_of_action_contexts",
    "pretrained",
    "pretrained_dts",
    "swiss_roll_points",
    "swiss_world",
]  # fmt: skip

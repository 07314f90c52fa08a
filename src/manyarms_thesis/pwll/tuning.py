"""Settings that every objective has for itself, chosen on validation users: rates, ridges, radii, clipping and the like.

A comparison of objectives at one setting is a comparison of settings: a ridge of 1 cripples whatever rests on a reward model. So
each objective gets its own, chosen once for a world and a way to optimise, with a log that no run learns from and users that no
run is tested on: a reward model's ridge first, at the first of the rates, then the learning rate, then any other parameter at
that rate. Where the best is the last of what is tried, the
grid is carried on by the same factor until it is not, at most CARRIED times. The choice is made for either way to count a policy
(drawn actions, most probable action), as each is judged by what it was chosen for. Choices are the same in every process; the
first that needs one stores it beside the results (MANYARMS_CACHE), for the others and for later runs.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from manyarms import __version__
from manyarms._base.files import write_text_atomically
from manyarms._base.seeds import digest
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.learning import MODE
from manyarms_thesis.pwll.learners import fit, objective_of
from manyarms_thesis.pwll.problems import Problem

# an objective's own parameter, and what is tried of it
OWN: Mapping[str, tuple[str, Sequence[float]]] = {
    "cIPS": ("tau", (0.001, 0.01, 0.1)),
    "cLPI": ("tau", (0.001, 0.01, 0.1)),
    "ES": ("alpha", (0.25, 0.5, 0.75)),
    "IX": ("gamma", (0.001, 0.01, 0.1)),
    "LS": ("smoothing", (0.001, 0.01, 0.1)),
    "RegKL": ("beta", (0.1, 0.2, 0.5)),
    "RegKL-LIN": ("beta", (0.1, 0.2, 0.5)),
    "DR": ("ridge", (1.0, 10.0, 100.0, 1_000.0)),
    "OffCEM": ("ridge", (1.0, 10.0, 100.0, 1_000.0)),
    "POTEC": ("ridge", (1.0, 10.0, 100.0, 1_000.0)),
    # how many neighbours a logged action has on average: the radius follows from the embeddings
    "PC": ("neighbours", (2.0, 10.0, 50.0)),
}
METRICS = (MODE, "value")
CARRIED = 3  # how often a grid is carried on beyond its ends
WIDEST = 10.0  # the largest factor of these steps
# beyond which a grid is not carried on, and how far any other may go
ENDS: Mapping[str, tuple[float, float]] = {"alpha": (0.0, 1.0), "tau": (0.0, 1.0), "beta": (0.1, math.inf)}
ANY = (0.0, math.inf)
Choice = dict[str, float]


def grid_for(objective: str, rates: Sequence[float], *, fixed: Sequence[str] = ()) -> dict[str, list[float]]:
    """What is tried for an objective: these rates, and its own parameter unless it is `fixed` by the panel."""
    grid = {"rate": list(rates)} if "rate" not in fixed else {}
    if objective in OWN and OWN[objective][0] not in fixed:
        name, values = OWN[objective]
        grid[name] = list(values)
    return {name: values for name, values in grid.items() if len(values) > 1}


def chosen(
    problem: Problem, objective: str, how: Mapping[str, Any], grid: Mapping[str, Sequence[float]]
) -> dict[str, Choice]:
    """For either way to count a policy, the settings of `grid` that validation users like best."""
    spec = {
        "world": dict(problem.made_of),
        "objective": objective,
        "how": dict(how),
        "grid": dict(grid),
        "carried": CARRIED,
    }
    text = json.dumps(spec, sort_keys=True)
    _WAITING[text] = problem
    try:
        return _chosen(text)
    finally:
        _WAITING.pop(text, None)


_WAITING: dict[str, Problem] = {}


@lru_cache(maxsize=512)
def _chosen(text: str) -> dict[str, Choice]:
    spec = json.loads(text)
    cache = os.environ.get("MANYARMS_CACHE")
    if not cache:
        return _searched(_WAITING[text], spec)
    path = Path(cache) / f"chosen-{digest([__version__, spec])[:24]}.json"
    with _only_one(path):
        try:
            stored: dict[str, Choice] = json.loads(path.read_text(encoding="utf-8"))["chosen"]
            return stored
        except (OSError, ValueError, KeyError):  # not there, or damaged
            pass
        found = _searched(_WAITING[text], spec)
        write_text_atomically(path, json.dumps({"spec": spec, "chosen": found}, indent=1) + "\n")
        return found


def _searched(problem: Problem, spec: Mapping[str, Any]) -> dict[str, Choice]:
    """One parameter after the other, a ridge and the rate first; nothing here looks at test users."""
    tuning, tried = problem.for_tuning(), dict[str, dict[str, float]]()
    best: dict[str, Choice] = {metric: {} for metric in METRICS}

    def score(metric: str, name: str, value: float) -> float:
        candidate = {**best[metric], name: value}
        key = json.dumps(candidate, sort_keys=True)
        if key not in tried:
            tried[key] = _judged(tuning, spec["objective"], {**spec["how"], **candidate})
        return tried[key][metric]

    # rates would otherwise be chosen with a reward model that a ridge of 1 cripples
    for name in sorted(spec["grid"], key=lambda one: (one != "ridge", one != "rate", one)):
        values = sorted(float(value) for value in spec["grid"][name])
        for metric in METRICS:
            best[metric][name] = best_of(values, partial(score, metric, name), spec["carried"], ENDS.get(name, ANY))
    return best


def best_of(
    values: Sequence[float], score: Callable[[float], float], carried: int, ends: tuple[float, float] = ANY
) -> float:
    """The value of a rising grid with the largest score; a best at an end is looked for beyond it, `carried` times at most."""
    scores = {value: score(value) for value in values}
    for _ in range(carried):
        places, found = sorted(scores), _largest(scores)
        if found == places[-1]:
            further = found * min(found / places[-2], WIDEST)
        elif found == places[0]:
            further = found / min(places[1] / found, WIDEST)
        else:
            break
        if not ends[0] <= further <= ends[1]:
            break
        scores[further] = score(further)
    return _largest(scores)


def _largest(scores: Mapping[float, float]) -> float:
    """The setting with the largest score, the first of several; one whose training diverged is never it."""
    return max(scores, key=lambda value: -math.inf if math.isnan(scores[value]) else scores[value])


def _judged(problem: Problem, objective: str, settings: Mapping[str, Any]) -> dict[str, float]:
    """What validation users get from the policy that these settings learn."""
    told, options = divided(settings)
    made = objective_of(objective, problem, **options)
    try:
        _, learned = fit(problem, problem.log, made, seed=0, ridge=options.get("ridge", 1.0), **told)
    except InvalidInput as error:
        if error.argument != "objective":  # what it says of a training that diverged
            raise
        return dict.fromkeys(METRICS, math.nan)
    return {
        MODE: float(problem.values_of_mode(learned.policy, "validation").mean()),
        "value": float(problem.values(learned.policy, "validation").mean()),
    }


def divided(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """What the training is told, and what the objective is."""
    training = ("epochs", "batch", "rate", "schedule", "optimiser", "space", "weight", "start")
    told = {name: value for name, value in settings.items() if name in training}
    return told, {name: float(value) for name, value in settings.items() if name not in training}


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Processes that want the same choice enter one by one; a process that dies lets the next one in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows: two may search for the same choice, which is only a waste
        yield
        return
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


__all__ = ["METRICS", "OWN", "best_of", "chosen", "divided", "grid_for"]

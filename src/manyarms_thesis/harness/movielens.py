"""MovieLens worlds of the online and the offline chapters: the real ratings where they are found, else made-up ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from manyarms.worlds import MovieLens, datasets
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.data import MADE_UP, flagged, is_readable, made_up_folder
from manyarms_thesis.harness.results import Results

REAL = "ml-1m"


def source() -> str:
    """The data set's name where it is found, else "made-up"."""
    return REAL if is_readable(datasets.find_ratings, REAL) else MADE_UP


def write_ratings(folder: str) -> None:
    """Made-up ratings of 400 users for 300 movies."""
    datasets.write_made_up_movielens(folder, users=400, movies=300, seed=0)


def movielens_world(*, source: str, seed: int, **parameters: Any) -> MovieLens:
    """The MovieLens world (thesis, Section 3.4.2), from the real ratings or from made-up ones."""
    folder = made_up_folder(write_ratings) if source == MADE_UP else None
    return MovieLens(**parameters, folder=folder, seed=seed)


def flag_ratings(results: Results, claims: Iterable[Claim], panels: str = "") -> list[Claim]:
    """Claims that rest on made-up ratings say so; `panels` is what the names of panels with ratings begin with."""
    return flagged(results, claims, "made-up ratings, not MovieLens", lambda made: made.panel.startswith(panels))


def source_title(results: Results) -> str:
    """What a figure's title says of the ratings."""
    made_up = results.parameter(results.panels[0], "data") == MADE_UP
    return "made-up ratings (not MovieLens)" if made_up else "MovieLens 1M"


def warnings() -> list[str]:
    """Made-up data are named as such."""
    if source() == REAL:
        return []
    return [
        "THESE ARE NOT MOVIELENS RESULTS. The ratings are made up (400 users, 300 movies), because the data set was "
        "not found. Set MANYARMS_DATA to the folder that holds ml-1m and run again."
    ]


__all__ = ["REAL", "flag_ratings", "movielens_world", "source", "source_title", "warnings", "write_ratings"]

"""Interaction files: every published format is read, and refused with its first bad line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from manyarms.errors import DataError, InvalidInput
from manyarms.worlds.interaction_files import Interactions, InteractionSet, interactions_of, read_interactions

needs_data = pytest.mark.skipif(not os.environ.get("MANYARMS_DATA"), reason="MANYARMS_DATA is not set")

# the same five interactions everywhere: user 3 with items 10 and 20, user 7 with 10, 30 and once more 10
MADE_UP: dict[InteractionSet, tuple[str, str]] = {
    "ml-1m": ("ratings.dat", "3::10::5::0\n3::20::2::0\n7::10::4::0\n7::30::1::0\n7::10::4::0\n"),
    "ml-100k": ("u.data", "3\t10\t5\t0\n3\t20\t2\t0\n7\t10\t4\t0\n7\t30\t1\t0\n7\t10\t4\t0\n"),
    "ml-25m": (
        "ratings.csv",
        "userId,movieId,rating,timestamp\n3,10,5.0,0\n3,20,2.0,0\n7,10,4.0,0\n7,30,0.5,0\n7,10,4.0,0\n",
    ),
    "gowalla": ("train.txt", "3 10 20\n5\n7 10 30 10\n"),
    "amazon-book": ("test.txt", "3 10 20 \n7 10 30 10"),
    "ciao": (
        "ratings.csv",
        "user,product,category,rating,helpfulness\n"
        "3,10,1,5,2\n3,20,1,2,0\n7,10,1,4,1\n7,30,2,1,1\n7,10,1,4,1\n9,40,1,0,1\n",
    ),
    "epinions": ("ratings.csv", "user,product,category,rating\n3,10,1,5\n3,20,1,2\n7,10,1,4\n7,30,2,1\n7,10,1,4\n"),
    "twitch": (
        "100k_a.csv",
        "3,33842865744,zeno,154,156\n3,33846768288,Mike_2,198,200\n7,33886469056,zeno,572,574\n"
        "7,33887624992,ana,581,582\n7,33890145056,zeno,594,600\n",
    ),
    "goodreads": (
        "goodreads_interactions.csv",
        "user_id,book_id,is_read,rating,is_reviewed\n3,10,1,5,0\n3,20,1,2,1\n7,10,1,4,0\n7,30,0,0,0\n7,10,1,4,0\n",
    ),
}


def write(folder: Path, name: InteractionSet, text: str | None = None, packed: bool = False) -> Path:
    file, given = MADE_UP[name]
    content = (given if text is None else text).encode()
    target = folder / name / (f"{file}.gz" if packed else file)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(content) if packed else content)
    return folder


def pairs(found: Interactions) -> set[tuple[object, object]]:
    return set(zip(found.user_ids[found.users].tolist(), found.item_ids[found.items].tolist(), strict=True))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", sorted(MADE_UP))
def test_each_format_gives_its_pairs_once(tmp_path: Path, name: InteractionSet, packed: bool) -> None:
    found = read_interactions(name, write(tmp_path, name, packed=packed))
    assert len(found) == 4
    if name == "twitch":
        assert pairs(found) == {(3, "zeno"), (3, "Mike_2"), (7, "zeno"), (7, "ana")}
    else:
        assert pairs(found) == {(3, 10), (3, 20), (7, 10), (7, 30)}
    assert (found.user_count, found.item_count) == (2, 3)
    assert found.provenance.endswith("4 interactions of 2 users with 3 items")
    assert (np.diff(found.users) >= 0).all()


@pytest.mark.parametrize("name", ["ml-1m", "ml-100k", "ml-25m", "ciao", "epinions", "goodreads"])
def test_ratings_below_the_least_are_left_out(tmp_path: Path, name: InteractionSet) -> None:
    found = read_interactions(name, write(tmp_path, name), least_rating=4)
    assert pairs(found) == {(3, 10), (7, 10)}
    with pytest.raises(DataError, match="no interaction with such a rating"):
        read_interactions(name, tmp_path, least_rating=6)


@pytest.mark.parametrize("name", ["gowalla", "twitch"])
def test_what_has_no_ratings_refuses_a_least_one(tmp_path: Path, name: InteractionSet) -> None:
    with pytest.raises(InvalidInput, match="has no ratings"):
        read_interactions(name, write(tmp_path, name), least_rating=3)


def test_the_splits_are_pooled(tmp_path: Path) -> None:
    write(tmp_path, "gowalla")
    (tmp_path / "gowalla" / "test.txt").write_text("3 99\n8 10\n")
    found = read_interactions("gowalla", tmp_path)
    assert pairs(found) == {(3, 10), (3, 20), (3, 99), (7, 10), (7, 30), (8, 10)}
    assert found.provenance.startswith("gowalla (train.txt, test.txt)")


def test_a_folder_may_be_the_data_sets_own(tmp_path: Path) -> None:
    write(tmp_path, "ciao")
    assert len(read_interactions("ciao", tmp_path / "ciao")) == 4


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("ml-1m", "3::10::5::0\n3::20::2\n", "line 2: expected 4 columns"),
        ("ml-1m", "3::10::x::0\n", "line 1: rating is not a number"),
        ("ml-1m", "3::10::nan::0\n", "line 1: rating is not a number of at least 0"),
        ("ml-100k", "3\t1.5\t5\t0\n", "line 1: item is not an integer"),
        ("ml-25m", "user,movie\n1,2\n", "line 1: expected the header"),
        ("epinions", "user,product,category,rating\n3,10,1,5\n-3,10,1,5\n", "line 3: user is not an integer"),
        ("goodreads", "user_id,book_id,is_read,rating,is_reviewed\n3,ten,1,5,0\n", "line 2: book_id is not"),
        ("twitch", "3,1,zeno,1,2\n\n3,1,zeno,1\n", "line 3: expected 5 columns"),
        ("twitch", f"3,1,{'z' * 70},1,2\n", "64 or more characters"),
        ("gowalla", "3 10\n4 x\n", "line 2: not a list of integers"),
        ("gowalla", "3 -10\n", "line 1: not a list of integers"),
        ("gowalla", "", "the file is empty"),
        ("gowalla", "3\n4\n", "no interaction"),
        ("ml-1m", "", "no interaction"),
    ],
)
def test_bad_files_are_refused_with_the_line(tmp_path: Path, name: InteractionSet, text: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        read_interactions(name, write(tmp_path, name, text))


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"twitch: no full_a.csv or 100k_a.csv"):
        read_interactions("twitch", tmp_path)
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    with pytest.raises(DataError, match="set MANYARMS_DATA"):
        read_interactions("goodreads")
    with pytest.raises(InvalidInput, match="one of ml-1m"):
        read_interactions("netflix")  # type: ignore[arg-type]


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    for name in ("gowalla", "epinions"):
        folder = write(tmp_path, name, packed=True)  # type: ignore[arg-type]
        path = next((folder / name).glob("*.gz"))
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(DataError, match="truncated"):
            read_interactions(name, tmp_path)  # type: ignore[arg-type]


def test_columns_of_any_origin(rng: np.random.Generator) -> None:
    users, items = rng.integers(50, 60, size=200), rng.integers(5, size=200)
    found = interactions_of(users, items)
    assert pairs(found) == set(zip(users.tolist(), items.tolist(), strict=True))
    with pytest.raises(InvalidInput, match="same length"):
        interactions_of(users, items[:-1])


@pytest.mark.data
@needs_data
@pytest.mark.parametrize(
    ("name", "users", "items", "count"),
    [
        ("ml-100k", 943, 1682, 100_000),
        ("ml-1m", 6040, 3706, 1_000_209),
        ("gowalla", 29_858, 40_981, 1_027_370),
        ("ciao", 7375, None, None),
    ],
)
def test_the_real_files_have_their_published_counts(
    name: InteractionSet, users: int, items: int | None, count: int | None
) -> None:
    found = read_interactions(name)
    assert found.user_count == users
    assert items is None or found.item_count == items
    assert count is None or len(found) == count

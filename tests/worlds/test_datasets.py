"""Rating files: found, read, and refused with the first bad line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from manyarms.errors import DataError, InvalidInput
from manyarms.worlds.datasets import find_ratings, read_ratings, write_made_up_movielens

GOOD = "1::10::5::978300760\n1::20::3::0\n7::10::1::0\n"


def written(folder: Path, text: str, name: str = "ratings.dat") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if name.endswith(".gz"):
        (folder / name).write_bytes(gzip.compress(text.encode("latin-1")))
    else:
        (folder / name).write_bytes(text.encode("latin-1"))
    return folder


@pytest.mark.parametrize("name", ["ratings.dat", "ratings.dat.gz"])
@pytest.mark.parametrize("text", [GOOD, GOOD.replace("\n", "\r\n"), GOOD.rstrip("\n"), GOOD + "\n\n"])
def test_ratings_are_read_and_numbered_without_gaps(tmp_path: Path, name: str, text: str) -> None:
    ratings = read_ratings(folder=written(tmp_path, text, name))
    np.testing.assert_array_equal(ratings.users, [0, 0, 1])
    np.testing.assert_array_equal(ratings.items, [0, 1, 0])
    np.testing.assert_array_equal(ratings.ratings, [5.0, 3.0, 1.0])
    np.testing.assert_array_equal(ratings.user_ids, [1, 7])
    np.testing.assert_array_equal(ratings.item_ids, [10, 20])
    assert len(ratings) == 3
    assert ratings.provenance == "MovieLens ml-1m: 3 ratings of 2 movies by 2 users"


def test_the_older_set_is_separated_by_tabs(tmp_path: Path) -> None:
    ratings = read_ratings("ml-100k", written(tmp_path, "196\t242\t3\t881250949\n186\t302\t3\t891717742\n", "u.data"))
    np.testing.assert_array_equal(ratings.user_ids, [186, 196])
    np.testing.assert_array_equal(ratings.users, [1, 0])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("3::5::4", "expected 4 columns"),
        ("3::5::4::0::1", "expected 4 columns"),
        ("3\t5\t4\t0", "expected 4 columns"),
        ("3::five::4::0", "movie is not a number"),
        ("3::5::::0", "rating is not a number"),
        ("3::5::nan::0", "rating is not finite"),
        ("3::5::6::0", "rating is not between 1 and 5"),
        ("3::5::0::0", "rating is not between 1 and 5"),
        ("3::5.5::4::0", "movie is not an integer"),
        ("-3::5::4::0", "user is not an integer"),
        ("3::5::4::inf", "timestamp is not finite"),
    ],
)
def test_the_first_bad_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    folder = written(tmp_path, GOOD + line + "\n" + GOOD + "worse\n")
    with pytest.raises(DataError, match=rf"ratings\.dat: line 4: {why}"):
        read_ratings(folder=folder)


@pytest.mark.parametrize("text", ["3::5\n", "worse\n", "1\t2\t3\t4\n1\t2\t3\t4\n"])
def test_a_file_that_is_wrong_throughout_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="line 1: expected 4 columns"):
        read_ratings(folder=written(tmp_path, text))


def test_files_that_are_no_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty"):
        read_ratings(folder=written(tmp_path / "empty", " \n"))
    whole = write_made_up_movielens(tmp_path / "cut") / "ratings.dat.gz"
    whole.write_bytes(whole.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"ratings\.dat\.gz: the gzip file is truncated"):
        read_ratings(folder=tmp_path / "cut")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "ratings.dat.gz").write_text(GOOD)
    with pytest.raises(DataError, match=r"ratings\.dat\.gz: cannot be read"):
        read_ratings(folder=tmp_path / "text")
    damaged = write_made_up_movielens(tmp_path / "damaged") / "ratings.dat.gz"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"ratings\.dat\.gz"):
        read_ratings(folder=tmp_path / "damaged")


def test_data_are_looked_for_in_the_folder_and_under_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    with pytest.raises(DataError, match=r"MANYARMS_DATA.*write_made_up_movielens"):
        find_ratings()
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no file ratings\.dat"):
        find_ratings()
    written(tmp_path / "ml-1m", GOOD)
    assert find_ratings() == tmp_path / "ml-1m" / "ratings.dat"
    assert find_ratings(folder=tmp_path / "ml-1m") == tmp_path / "ml-1m" / "ratings.dat"
    with pytest.raises(InvalidInput, match="data"):
        find_ratings("ml-25m")  # type: ignore[arg-type]


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path) -> None:
    folder = written(tmp_path, GOOD)
    first = read_ratings(folder=folder)
    assert read_ratings(folder=folder) is first
    with pytest.raises(ValueError, match="read-only"):
        first.ratings[0] = 2.0
    written(tmp_path, GOOD + "7::20::2::0\n")
    assert len(read_ratings(folder=folder)) == 4


def test_made_up_ratings_say_so_and_repeat(tmp_path: Path) -> None:
    one = write_made_up_movielens(tmp_path / "one", users=40, movies=25, seed=3)
    two = write_made_up_movielens(tmp_path / "two", users=40, movies=25, seed=3)
    assert (one / "ratings.dat.gz").read_bytes() == (two / "ratings.dat.gz").read_bytes()
    ratings = read_ratings(folder=one)
    assert ratings.provenance.startswith("made-up data, not MovieLens")
    assert len(ratings.user_ids) == 40 and len(ratings.item_ids) == 25
    assert set(ratings.ratings) == {1.0, 2.0, 3.0, 4.0, 5.0}
    write_made_up_movielens(tmp_path / "other", users=40, movies=25, seed=4)
    assert (one / "ratings.dat.gz").read_bytes() != (tmp_path / "other" / "ratings.dat.gz").read_bytes()

"""A catalogue of items: read from anything, fitted once, longer without forgetting, kept whole, and clear about what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput, StorageError, UnknownAction
from manyarms.items import k_means

SHOP: dict[str, Any] = {
    "sku": ["a", "b", "c", "d"],
    "title": ["Green tea", "Black tea", "A mug", "A pot"],
    "kind": ["tea", "tea", "crockery", "crockery"],
    "genres": ["hot|leaf", "hot|leaf", None, "hot"],
    "price": [3.0, 4.0, 8.0, np.nan],
    "vector": [[1.0, 0.0], [0.9, 0.1], [0.0, 2.0], [0.0, 0.0]],
}
NEW = {"sku": ["e", "f"], "title": ["Jug", "x"], "kind": ["jug", "tea"], "genres": [None, "leaf|new"], "price": [5.0, 6.0],
       "vector": [[0.0, 1.0], [2.0, 0.0]]}  # fmt: skip


def shop() -> ma.Catalogue:
    return ma.Catalogue(SHOP)


def test_ids_features_and_guesses() -> None:
    items = shop()
    assert list(items) == list(items.actions) == ["a", "b", "c", "d"] and len(items) == 4 and "c" in items
    assert items.feature_columns == ("kind", "genres", "price", "vector")
    assert any("'sku'" in note for note in items.notes) and any("title" in note for note in items.notes)
    assert items["b"]["title"] == "Black tea" and items["d"]["price"] is None
    assert items[["c", "a"]].column("title").tolist() == ["A mug", "Green tea"]
    text = str(items)
    assert text.startswith("4 items, 4 features") and "Green tea" in text
    assert "<table" in items._repr_html_() and repr(items).startswith("Catalogue(4 items")
    numbered = ma.Catalogue({"item_id": [7, 3], "price": [1.0, 2.0]})
    assert list(numbered) == [7, 3] and numbered[3]["price"] == 2.0
    assert ma.Catalogue({"name": ["x", "y"], "n": [1, 2]}, id="name").feature_columns == ("n",)
    with pytest.raises(UnknownAction):
        items["z"]


def test_features_and_embeddings() -> None:
    items = shop()
    names = items.encoder(["kind", "price"]).names
    features = items.features(["kind", "price"])
    assert names == ["kind=crockery", "kind=tea", "kind: other", "price", "price is missing"]
    np.testing.assert_array_equal(features[:, 1], [1, 1, 0, 0])
    np.testing.assert_array_equal(features[:, 4], [0, 0, 0, 1])
    unit = items.embeddings()
    assert unit.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), [1, 1, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(items.embeddings(normalise=False), SHOP["vector"], rtol=1e-6)
    np.testing.assert_allclose(items.embeddings("price"), items.features("price"), rtol=1e-6)
    # all directions kept is a rotation: distances stay
    rng = np.random.default_rng(0)
    wide = ma.Catalogue({"id": list(range(50)), "v": rng.normal(size=(50, 5)) * [5, 1, 1, 1, 0.1]})
    whole, turned = wide.embeddings(normalise=False), wide.embeddings(normalise=False, dim=5)
    distances = [np.linalg.norm(v[:, None] - v[None], axis=2) for v in (whole, turned)]
    np.testing.assert_allclose(*distances, atol=1e-4)
    first = wide.embeddings(normalise=False, dim=1)[:, 0]
    assert abs(np.corrcoef(first, whole[:, 0])[0, 1]) > 0.99


def test_mixing_weights_of_categories() -> None:
    items = shop()
    kinds = items.mixing("kind")
    np.testing.assert_array_equal(kinds, [[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]])
    genres = items.mixing("genres", separator="|")
    assert items.mixing_names("genres", separator="|") == ["genres=hot", "genres=leaf", "genres: other"]
    half = np.sqrt(0.5)
    np.testing.assert_allclose(genres, [[half, half, 0], [half, half, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose((items.mixing(["kind", "genres"]) ** 2).sum(axis=1), 1.0)  # one variance for all
    assert items.mixing().shape == (4, 3 + 3)
    prior = items.prior(5, "kind")
    assert (prior.actions, prior.effects, prior.dim) == (4, 3, 5)
    marginal = prior.marginal()
    np.testing.assert_allclose(np.trace(np.atleast_3d(marginal.covariance)[0]), 1.0)


def test_a_longer_catalogue_keeps_what_was_fitted() -> None:
    items = shop()
    longer = items.add(NEW)
    assert list(longer) == [*"abcdef"] and longer.actions.rows(["e"]) == [4] and len(items) == 4
    for road in (
        lambda c: c.features(), lambda c: c.embeddings(), lambda c: c.embeddings(dim=1), lambda c: c.mixing("kind"),
        lambda c: c.mixing("genres", separator="|"), lambda c: c.clusters(columns="kind"), lambda c: c.action_contexts([2.0]),
    ):  # fmt: skip
        np.testing.assert_array_equal(road(longer)[:4], road(items))
        np.testing.assert_array_equal(road(longer[["f", "a"]])[1], road(items)[0])
    np.testing.assert_array_equal(longer.mixing("kind")[4:], [[0, 0, 1], [0, 1, 0]])  # a new kind is none of the known
    for wrong in (SHOP, {"sku": ["e"]}, NEW | {"price": ["dear", "cheap"]}, {**NEW, "sku": [1, 2]}):
        with pytest.raises(InvalidInput):
            items.add(wrong)


def test_mixtures_and_clusters() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)
    group = rng.integers(0, 3, 90)
    items = ma.Catalogue({"id": list(range(90)), "v": 20.0 * np.eye(3)[group] + rng.normal(size=(90, 3))})
    labels = items.clusters(3)
    weights = items.mixing("v", "mixture", effects=3)
    for found in (labels, weights.argmax(axis=1)):
        assert len({(g, f) for g, f in zip(group.tolist(), found.tolist(), strict=True)}) == 3
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    longer = items.add({"id": [90], "v": [[20.0, 0.0, 0.0]]})
    assert longer.clusters(3)[90] == labels[group == 0][0]
    np.testing.assert_array_equal(longer.clusters(3)[:90], labels)
    np.testing.assert_array_equal(k_means(items.embeddings(), 3)[0], labels)
    with pytest.raises(InvalidInput):
        items.clusters(91)


def test_contexts_of_actions() -> None:
    items = shop()
    f = items.features("kind")
    np.testing.assert_array_equal(items.action_contexts(columns="kind"), np.column_stack([np.ones(4), f]))
    x = np.array([2.0, -1.0])
    Z = items.action_contexts(x, ["c", "a"], "kind")
    assert Z.shape == (2, 3 * 4)
    np.testing.assert_array_equal(Z[0], np.outer([1, 2, -1], [1, *f[2]]).ravel())
    np.testing.assert_array_equal(items.action_contexts(np.stack([x, x]), ["c", "a"], "kind")[1], Z)
    np.testing.assert_array_equal(items.action_contexts(x, ["a"], "kind", crossed=False), [[1, 2, -1, *f[0]]])
    prior = ma.HierarchicalPrior(4, np.zeros(12), np.eye(12), 0.1 * np.eye(12))
    agent = ma.HierTS(prior, catalogue=items, seed=0)
    Z = items.action_contexts(x, columns="kind")
    assert agent.decide(action_contexts=Z) in items


def test_read_from_files_and_frames(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("sku,kind,price\n007,tea,3\n010,mug,\n", encoding="utf-8")
    items = ma.Catalogue(path)
    assert list(items) == ["007", "010"] and items["007"]["price"] == 3
    path.write_text("product_id,kind\n7,tea\n10,mug\n", encoding="utf-8")
    assert list(ma.Catalogue(str(path))) == [7, 10]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SHOP)
    np.testing.assert_array_equal(ma.Catalogue(frame).features(), shop().features())
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "items.parquet")
    np.testing.assert_array_equal(ma.Catalogue(tmp_path / "items.parquet").features(), shop().features())


def test_kept_whole(tmp_path: Path) -> None:
    for items in (shop(), shop().add(NEW), shop().add(NEW)[["f", "b"]]):
        items.save(tmp_path / "items")
        again = ma.load(tmp_path / "items", ma.Catalogue)
        assert list(again) == list(items) and str(again) == str(items)
        np.testing.assert_array_equal(again.features(), items.features())
        np.testing.assert_array_equal(again.mixing("kind"), items.mixing("kind"))
    spec, arrays = shop().state()
    from manyarms._base import storage

    bad = np.array([9, 9, 9, 9])
    for wrong, damaged in (
        (spec | {"id": "other"}, arrays), (spec | {"features": ["other"]}, arrays), (spec, arrays | {"items/0/values": bad}),
        (spec, arrays | {"items/4/values": np.zeros(3)}), (spec | {"items": spec["items"][:2]}, arrays),
    ):  # fmt: skip
        storage.save(tmp_path / "wrong", "catalogue", wrong, damaged)
        with pytest.raises(StorageError):
            ma.load(tmp_path / "wrong")


@pytest.mark.parametrize(
    "make",
    [
        lambda: ma.Catalogue(3),
        lambda: ma.Catalogue({"price": [1.0]}),
        lambda: ma.Catalogue({"id": []}),
        lambda: ma.Catalogue({"id": ["a", "a"]}),
        lambda: ma.Catalogue({"id": ["a", None]}),
        lambda: ma.Catalogue({"id": [0.5]}),
        lambda: ma.Catalogue({"id": np.array([True, False])}),
        lambda: ma.Catalogue(SHOP, "other"),
        lambda: ma.Catalogue(SHOP, features=["other"]),
        lambda: ma.Catalogue(SHOP, features="price"),
        lambda: ma.Catalogue({"id": ["a"]}).features(),
        lambda: shop().features("other"),
        lambda: shop().features([]),
        lambda: shop().embeddings(dim=9),
        lambda: shop().mixing("vector"),
        lambda: shop().mixing(kind="other"),  # type: ignore[arg-type]
        lambda: shop().mixing("price", "mixture"),
        lambda: shop().mixing("genres", separator=""),
        lambda: ma.Catalogue({"id": ["a"], "n": [1.0]}).mixing(),
        lambda: shop().clusters(),
        lambda: shop().prior(0),
        lambda: shop().prior(3, share=1.0),
        lambda: shop().action_contexts("x"),
        lambda: shop().action_contexts([[[1.0]]]),
        lambda: shop().action_contexts([1.0], ["z"]),
        lambda: shop().column("other"),
        lambda: shop()[[]],
        lambda: shop()[0.5],
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidInput):
        make()

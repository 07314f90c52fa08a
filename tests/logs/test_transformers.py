"""Fitted scikit-learn transformers as encoders: the same numbers as theirs, saved without pickle, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput, MissingExtra, StorageError
from manyarms.logs import Encoding, TransformerEncoder, from_frame, read_parquet, to_parquet
from manyarms.logs.contexts import encoded
from manyarms.logs.encoding import as_encoder, encoder_of_json

pytest.importorskip("sklearn")
pytest.importorskip("skops")
pandas = pytest.importorskip("pandas")

from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler  # noqa: E402

FRAME = pandas.DataFrame(
    {"age": [20.0, 47.5, np.nan, 33.0], "town": ["Ulm", "Bonn", np.nan, "Ulm"], "visits": [3, 0, 12, 7]}
)


def fitted() -> Any:
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    towns = OneHotEncoder(handle_unknown="ignore")
    return ColumnTransformer([("numbers", numbers, ["age", "visits"]), ("town", towns, ["town"])]).fit(FRAME)


def dense(made: Any) -> Any:
    return made.toarray() if hasattr(made, "toarray") else np.asarray(made)


def test_numbers_are_the_transformers_own() -> None:
    transformer = fitted()
    encoder = TransformerEncoder(transformer)
    wanted = dense(transformer.transform(FRAME))
    assert encoder.columns == ["age", "town", "visits"] and encoder.dim == wanted.shape[1]
    assert encoder.names == list(transformer.get_feature_names_out())
    np.testing.assert_array_equal(encoded(encoder, FRAME), wanted)
    plain = {name: FRAME[name].tolist() for name in FRAME}
    np.testing.assert_array_equal(encoded(encoder, plain), wanted)
    for i in range(4):
        row = {name: values[i] for name, values in plain.items()}
        np.testing.assert_allclose(encoded(encoder, row), wanted[i], atol=1e-15)
        np.testing.assert_allclose(encoded(encoder, FRAME.iloc[i]), wanted[i], atol=1e-15)
    transformer.named_transformers_["numbers"][-1].mean_ += 1.0  # the encoder has one of its own
    np.testing.assert_array_equal(encoded(encoder, FRAME), wanted)


def test_sparse_results_become_dense_and_arrays_have_named_columns() -> None:
    sparse = TransformerEncoder(OneHotEncoder().fit(FRAME[["town"]]))
    np.testing.assert_array_equal(encoded(sparse, {"town": "Ulm"}), [0, 1, 0])
    on_arrays = StandardScaler().fit(np.array([[1.0, 10.0], [3.0, 30.0]]))
    with pytest.raises(InvalidInput, match="columns"):
        TransformerEncoder(on_arrays)
    encoder = TransformerEncoder(on_arrays, ["a", "b"])
    np.testing.assert_array_equal(encoded(encoder, {"b": 30, "a": 1}), [-1.0, 1.0])
    for wrong in (["a"], ["a", "a"], "ab", [1, 2]):
        with pytest.raises(InvalidInput, match="columns"):
            TransformerEncoder(on_arrays, wrong)  # type: ignore[arg-type]


def test_kept_without_pickle_bit_for_bit(tmp_path: Path) -> None:
    encoder = TransformerEncoder(fitted())
    encoder.save(tmp_path / "encoder")
    wanted = encoder.apply(FRAME)
    for again in (ma.load(tmp_path / "encoder"), encoder_of_json(encoder.as_json())):
        assert (again.columns, again.names) == (encoder.columns, encoder.names)
        np.testing.assert_array_equal(again.apply(FRAME), wanted)
        assert again.state()[1]["skops"].tobytes() == encoder.state()[1]["skops"].tobytes()


def own_function(values: Any) -> Any:
    return values


def test_what_could_run_code_is_refused_and_named(tmp_path: Path) -> None:
    own = FunctionTransformer(own_function, feature_names_out="one-to-one").fit(FRAME[["visits"]])
    encoder = TransformerEncoder(own)
    np.testing.assert_array_equal(encoded(encoder, {"visits": 3}), [3.0])
    with pytest.raises(InvalidInput, match="own_function"):
        encoder.save(tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()
    import skops.io

    packed = np.frombuffer(skops.io.dumps(own), dtype=np.uint8)
    spec = {"columns": ["visits"], "names": ["visits"]}
    with pytest.raises(StorageError, match=r"not trusted: .*own_function"):
        TransformerEncoder.from_state(spec, {"skops": packed})
    for broken in (packed[:100], packed.astype(np.float64), np.zeros((2, 2), np.uint8)):
        with pytest.raises(StorageError):
            TransformerEncoder.from_state(spec, {"skops": broken})
    good, arrays = TransformerEncoder(StandardScaler().fit(FRAME[["visits"]])).state()
    for wrong in ({}, good | {"columns": ["other"]}, good | {"names": []}, good | {"columns": 3}):
        with pytest.raises(StorageError):
            TransformerEncoder.from_state(wrong, arrays)
    with pytest.raises(StorageError):
        encoder_of_json({**good, "skops": "no base64"})
    with pytest.raises(StorageError, match="kind"):
        encoder_of_json({"kind": "other"})


def test_what_is_no_fitted_transformer_is_refused() -> None:
    for wrong in (StandardScaler(), make_pipeline(StandardScaler()), StandardScaler, 3, "text", np.zeros(3)):
        with pytest.raises(InvalidInput, match="transformer"):
            TransformerEncoder(wrong)
    with pytest.raises(InvalidInput, match="get_feature_names_out"):
        TransformerEncoder(FunctionTransformer().fit(FRAME[["visits"]]))
    with pytest.raises(InvalidInput, match="encoder"):
        as_encoder("encoder", 3)
    encoder = TransformerEncoder(fitted())
    with pytest.raises(InvalidInput, match=r"no column 'town'.*|expected the columns age, town, visits"):
        encoded(encoder, FRAME[["age", "visits"]])
    with pytest.raises(InvalidInput, match="takes"):
        encoded(encoder, {"age": "old", "town": "Ulm", "visits": 1})
    with pytest.raises(InvalidInput, match="vectors"):
        encoded(encoder, {"age": [[1.0, 2.0]], "town": ["Ulm"], "visits": [1]})


def test_a_log_is_read_with_a_transformer_and_keeps_it(tmp_path: Path) -> None:
    transformer = fitted()
    table = FRAME.assign(action=["a", "b", "a", "c"], reward=[1, 0, 0, 1], propensity=0.5)
    log = from_frame(table, encoder=transformer)
    np.testing.assert_array_equal(log.contexts, dense(transformer.transform(FRAME)))
    pytest.importorskip("pyarrow")
    to_parquet(log, tmp_path / "log.parquet")
    again = read_parquet(tmp_path / "log.parquet")
    assert isinstance(again.encoder, TransformerEncoder)
    np.testing.assert_array_equal(encoded(again.encoder, FRAME), log.contexts)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    import manyarms.logs.transformers as module

    def absent(name: str) -> Any:
        if name.startswith(("skops", "pandas", "polars")):
            raise ImportError(name)
        return importlib.import_module(name)

    encoder = TransformerEncoder(fitted())
    monkeypatch.setattr(module, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"manyarms\[sklearn\]"):
        encoder.state()
    with pytest.raises(MissingExtra, match=r"manyarms\[frames\]"):
        encoder.row({"age": 1.0, "town": "Ulm", "visits": 2})


def test_columns_of_numbers_keep_their_names(tmp_path: Path) -> None:
    table = {"age": [31.0, 47.0], "visits": [3, 4], "item": ["pear", "fig"], "click": [0, 1], "propensity": [0.5, 0.25]}
    log = from_frame(table)
    assert log.encoder is not None and log.encoder.columns == ["age", "visits"]
    np.testing.assert_array_equal(log.contexts, [[31.0, 3.0], [47.0, 4.0]])
    np.testing.assert_array_equal(encoded(log.encoder, {"visits": 5, "age": 20, "town": "not read"}), [20.0, 5.0])
    with pytest.raises(InvalidInput, match="missing"):
        encoded(log.encoder, {"visits": 5, "age": None})
    pytest.importorskip("pyarrow")
    to_parquet(log, tmp_path / "log.parquet")
    again = read_parquet(tmp_path / "log.parquet")
    assert again.encoder is not None and again.encoder.columns == ["age", "visits"]
    vectors = from_frame({"context": [[1.0, 2.0], [3.0, 4.0]], "action": [0, 1], "reward": [0, 1]})
    assert vectors.encoder is None  # one column of vectors is an array, and has no names but its own
    assert Encoding().fit(table, ["age"]).columns == ["age"]

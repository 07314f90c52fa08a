"""Catalogue: the ids of items and what is known about them, and the roads from there into every method.

Whatever is fitted (categories, means and scales, mixtures, clusters) is fitted on the items that the catalogue was made of, and
applied to those that `add` brings later, so that a new item means the same to a policy that was learned before it came.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from manyarms._base import storage, tables, validate
from manyarms._base.nested import prefixed, under
from manyarms._base.text import counted
from manyarms._base.typing import AnyArray, Array, Ints, loose
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.items import mixing as mixings
from manyarms.items.clustering import k_means
from manyarms.items.reading import ItemsLike, appended, read, table_of_state, table_state
from manyarms.logs.actions import ActionId, Actions
from manyarms.logs.encoding import Encoding, TableEncoder, names_of
from manyarms.logs.tables import Column, Table
from manyarms.priors import MixedEffectPrior

KIND = "catalogue"
Value = str | int | float | bool | None | datetime.datetime | AnyArray
"""An entry of a column: a text, a number, a time or a vector; None where it is missing."""
SHOWN = 8  # rows of the table that it prints
MOST_SHARE = (
    0.5  # of the items may have texts of their own, for these to be categories; a title has as many as there are items
)


class Catalogue(tables.Shown):
    """Items: ids, and columns of features.

    items: a frame, a mapping from columns to values, or the path of a CSV or Parquet file; a row for each item.
    id: the column of the ids, texts or integers; looked for by its usual names (id, item_id, sku, product_id, ...) unless given.
    features: the columns that describe items to methods; by default all numbers and vectors, and those texts that many items
    share (titles and descriptions are shown, but are no features). `notes` says what was guessed.

    >>> items = Catalogue({"sku": ["a", "b", "c"], "kind": ["tea", "tea", "mug"], "price": [3.0, 4.0, 8.0]})
    >>> items.actions.ids([2]), items["a"]["price"], items.mixing("kind").tolist()
    (['c'], 3.0, [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    """

    def __init__(self, items: ItemsLike, id: str | None = None, *, features: Sequence[str] | None = None) -> None:
        table, name, actions, notes = read(items, id)
        if features is None:
            chosen, plain = _guessed(table, name)
            notes += [f"shown, but no features: {', '.join(plain)}"] if plain else []
        else:
            chosen = self._known(table, names_of("features", features))
        self._set(table, table, name, actions, chosen, tuple(notes))

    def _set(
        self, table: Table, fitted: Table, id: str, actions: Actions, features: tuple[str, ...], notes: tuple[str, ...]
    ) -> None:
        self._rows, self._fitted = (
            table,
            fitted,
        )  # the items, and those that encodings, mixtures and clusters are fitted on
        self.id, self.actions, self.feature_columns, self.notes = id, actions, features, notes

    def _with(self, table: Table, actions: Actions) -> Catalogue:
        other = object.__new__(Catalogue)
        other._set(table, self._fitted, self.id, actions, self.feature_columns, self.notes)
        return other

    # ---- items

    @property
    def columns(self) -> list[str]:
        """All columns."""
        return list(self._rows.columns)

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[ActionId]:
        return iter(self.actions)

    def __contains__(self, name: object) -> bool:
        return name in self.actions

    @overload
    def __getitem__(self, ids: ActionId) -> dict[str, Value]: ...  # type: ignore[overload-overlap]

    @overload
    def __getitem__(self, ids: Sequence[ActionId] | AnyArray) -> Catalogue: ...

    def __getitem__(self, ids: ActionId | Sequence[ActionId] | AnyArray) -> dict[str, Value] | Catalogue:
        """What is known of an item, by columns; for several ids, a catalogue of these items in their order."""
        if isinstance(ids, str | int | np.integer):
            row = self.actions.row(ids)
            return {name: _value(column, row) for name, column in self._rows.columns.items()}
        rows = self.actions.rows(ids, "ids")
        if not len(rows):
            raise InvalidInput("ids", "none", "at least one id")
        return self._with(_part(self._rows, rows), Actions(self.actions.ids(rows)))

    def column(self, name: str) -> AnyArray:
        """The entries of a column: numbers (NaN where one is missing), texts ('' where one is), times, or vectors (K, m)."""
        column = self._rows[self._known(self._rows, (name,))[0]]
        if column.categories is not None:
            return column.texts()
        if column.missing is None or column.kind.name == "time":
            return column.values
        values = column.values.astype(np.float64)
        values[column.missing] = np.nan
        return values

    def add(self, items: ItemsLike) -> Catalogue:
        """A longer catalogue: new items behind these, described by what was fitted on these."""
        table, _, actions, _ = read(items, self.id)
        if len(self) and actions.numbered != self.actions.numbered:
            kinds = ("integers", "strings") if self.actions.numbered else ("strings", "integers")
            raise InvalidInput("items", f"ids that are {kinds[1]}", f"{kinds[0]}, as the other ids")
        for name in actions:
            if name in self.actions:
                raise UnknownAction("items", f"the id {validate.describe(name)}", "new items: this id is known")
        return self._with(appended(self._rows, table), self.actions.add(actions))

    # ---- features

    def encoder(self, columns: str | Sequence[str] | None = None) -> TableEncoder:
        """How columns become features: numbers with mean 0 and deviation 1, vectors alike, texts one entry a category."""
        chosen = self._chosen(columns)
        return Encoding(intercept=False).fit(_columns(self._fitted, chosen), chosen)

    def features(self, columns: str | Sequence[str] | None = None) -> Array:
        """Features (K, f) of the items; `encoder(columns).names` says what each is."""
        chosen = self._chosen(columns)
        return self.encoder(chosen).apply(_columns(self._rows, chosen))

    def embeddings(
        self, columns: str | Sequence[str] | None = None, *, dim: int | None = None, normalise: bool | None = None
    ) -> AnyArray:
        """Vectors (K, l) in float32, for policies, indexes and diffusion priors.

        columns: by default the columns of vectors, or all features where there is none. Vectors alone stay as they are (zeros
        where one is missing); anything else goes through `features`. dim: keep the so many directions that vary most.
        normalise: vectors of length 1, so that inner products are cosines; by default where columns of vectors stay as they are.
        """
        normalise = None if normalise is None else validate.flag("normalise", normalise)
        vectors = [name for name in self.feature_columns if self._rows[name].kind.name == "vector"]
        chosen = tuple(vectors) if columns is None and vectors else self._chosen(columns)
        as_they_are = all(self._rows[name].kind.name == "vector" for name in chosen)
        if as_they_are:
            found, known = _vectors(self._rows, chosen), _vectors(self._fitted, chosen)
        else:
            found, known = self.features(chosen), self.encoder(chosen).apply(_columns(self._fitted, chosen))
        if dim is not None:
            dim = validate.count("dim", dim, most=found.shape[1])
            centre = known.mean(axis=0)
            _, directions = np.linalg.eigh((known - centre).T @ (known - centre))
            directions = directions[:, ::-1][:, :dim]
            largest = np.abs(directions).argmax(
                axis=0
            )  # a direction has no sign of its own: this one is the same everywhere
            found = (found - centre) @ (directions * np.sign(directions[largest, np.arange(dim)]))
        if as_they_are if normalise is None else normalise:
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
            found = found / np.where(lengths > 0, lengths, 1.0)
        return np.ascontiguousarray(found, dtype=np.float32)

    # ---- roads

    def mixing(
        self,
        columns: str | Sequence[str] | None = None,
        kind: Literal["categories", "mixture"] = "categories",
        *,
        effects: int | None = None,
        separator: str | None = None,
        seed: int = 0,
    ) -> Array:
        """Mixing weights (K, L) of mixed-effect priors: how much of each effect is in each item.

        "categories": columns of texts (by default all that are features); an effect for each category, and one for what is
        unknown in each column. An item in m categories has 1/sqrt(m) of each, so that all items have the same variance.
        separator: where entries are several categories in one text, as "Comedy|Drama".
        "mixture": probabilities of the components of a Gaussian mixture of the features, `effects` in number (scikit-learn).
        """
        validate.one_of("kind", kind, ("categories", "mixture"))
        seed = validate.seed(seed)
        if kind == "categories":
            if effects is not None:
                raise InvalidInput(
                    "effects", validate.describe(effects), 'None: categories are counted, kind="mixture" is told'
                )
            chosen = (
                self._chosen(columns) if columns is not None else mixings.texts_among(self._rows, self.feature_columns)
            )
            return mixings.categories(self._fitted, self._rows, chosen, separator)[0]
        if separator is not None:
            raise InvalidInput(
                "separator", validate.describe(separator), "None: a mixture is found in features as they are"
            )
        effects = validate.count("effects", effects)
        known = self.encoder(columns).apply(_columns(self._fitted, self._chosen(columns)))
        return mixings.components(known, self.features(columns), effects, seed)

    def mixing_names(self, columns: str | Sequence[str] | None = None, *, separator: str | None = None) -> list[str]:
        """What each effect of `mixing` by categories is."""
        chosen = self._chosen(columns) if columns is not None else mixings.texts_among(self._rows, self.feature_columns)
        return mixings.categories(self._fitted, self._rows, chosen, separator)[1]

    def prior(
        self,
        dim: int,
        columns: str | Sequence[str] | None = None,
        kind: Literal["categories", "mixture"] = "categories",
        *,
        effects: int | None = None,
        separator: str | None = None,
        variance: float | None = None,
        share: float = 0.75,
        seed: int = 0,
    ) -> MixedEffectPrior:
        """A prior for contexts of length `dim`: items that share effects, as `mixing` says.

        variance: of every entry of theta_a; by default 1/dim, with which scores of contexts whose entries are about 1 in size
        have about variance 1. share: the effects' part of it, the rest is the item's own. `manyarms.fit_prior` fits both. So that
        all items have that variance, probabilities of a mixture are scaled to sums of squares of 1.
        """
        dim = validate.count("dim", dim)
        share = validate.number("share", share, above=0, below=1)
        total = 1.0 / dim if variance is None else validate.positive("variance", variance)
        weights = self.mixing(columns, kind, effects=effects, separator=separator, seed=seed)
        # of b = (1/2, 1/2) half the effects' variance would be left: lengths of 1 give every item the same, as categories have
        weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
        return MixedEffectPrior.isotropic(
            weights, dim, effect_variance=share * total, action_variance=(1 - share) * total
        )

    def clusters(self, number: int | None = None, columns: str | Sequence[str] | None = None, *, seed: int = 0) -> Ints:
        """Labels (K,) of groups of similar items, for MIPS, OffCEM and policies in two stages.

        number: of clusters, found by k-means on `embeddings(columns)` (scikit-learn); without it, the categories of one column.
        """
        seed = validate.seed(seed)
        if number is None:
            chosen = self._chosen(columns)
            if len(chosen) != 1:
                raise InvalidInput("number", "None", "the number of clusters, or one column whose categories they are")
            weights = mixings.categories(self._fitted, self._rows, chosen, None)[0]
            return np.asarray(weights.argmax(axis=1), dtype=np.int64)
        found = self.embeddings(columns)
        if self._rows is self._fitted:
            return k_means(found, number, seed=seed)[0]
        return k_means(self._with(self._fitted, self.actions).embeddings(columns), number, seed=seed, others=found)[1]

    def action_contexts(
        self,
        x: npt.ArrayLike | None = None,
        ids: Sequence[ActionId] | None = None,
        columns: str | Sequence[str] | None = None,
        *,
        crossed: bool = True,
    ) -> Array:
        """A context for every item, or for `ids`, as `agent.decide(action_contexts=...)` takes it: (m, p), or (n, m, p).

        x: an encoded context (d,), or several (n, d); without one, contexts are (1, f) with the item's features f.
        crossed: all products of (1, x) and (1, f), so that what a feature is worth may depend on x; otherwise (1, x, f).
        """
        crossed = validate.flag("crossed", crossed)
        chosen = self if ids is None else self[ids if isinstance(ids, np.ndarray) else tuple(ids)]
        f = chosen.features(columns)
        F: Array = np.column_stack([np.ones(len(f)), f])
        if x is None:
            return F
        given = validate.as_floats("x", x)
        if given.ndim not in (1, 2) or not given.size:
            raise InvalidInput("x", f"shape {given.shape}", "a context (d,), or several (n, d)")
        X = np.atleast_2d(given)
        U = np.column_stack([np.ones(len(X)), X])
        width = U.shape[1] * F.shape[1] if crossed else U.shape[1] + f.shape[1]
        validate.room("x", len(X), 8.0 * len(F) * width, f"contexts, each with {len(F):,} items of {width:,} numbers")
        if crossed:
            made = (U[:, None, :, None] * F[None, :, None, :]).reshape(len(X), len(F), width)
        else:
            made = np.empty((len(X), len(F), width))
            made[:, :, : U.shape[1]] = U[:, None, :]
            made[:, :, U.shape[1] :] = f
        return made[0] if given.ndim == 1 else made

    # ---- showing and keeping

    def _table(self) -> tables.Table:
        columns = [self.id, *(name for name in self.columns if name != self.id)]
        rows = [[_cell(self._rows[name], row) for name in columns] for row in range(min(len(self), SHOWN))]
        notes = list(self.notes) + ([f"and {counted(len(self) - SHOWN, 'item')} more"] if len(self) > SHOWN else [])
        title = f"{counted(len(self), 'item')}, {counted(len(self.feature_columns), 'feature')}"
        return tables.Table(f"{title}: {', '.join(self.feature_columns) or 'none'}", columns, rows, notes)

    def state(self) -> tuple[dict[str, storage.JSON], dict[str, AnyArray]]:
        """A JSON part and arrays that give it back."""
        spec, arrays = table_state(self._rows)
        arrays = prefixed("items/", arrays) | prefixed("ids/", self.actions.arrays())
        told: dict[str, storage.JSON] = {
            "id": self.id,
            "features": list(self.feature_columns),
            "items": spec,
            "fitted": None,
        }
        if self._fitted is not self._rows:
            told["fitted"], more = table_state(self._fitted)
            arrays |= prefixed("fitted/", more)
        return {**told, "notes": list(self.notes)}, arrays

    def save(self, folder: Path | str) -> None:
        """Write the catalogue to a folder of its own; `manyarms.load` reads it."""
        storage.save(folder, KIND, *self.state())

    # ---- names of columns

    def _chosen(self, columns: str | Sequence[str] | None) -> tuple[str, ...]:
        if columns is None:
            if not self.feature_columns:
                raise InvalidInput("columns", "None", "columns that describe the items; this catalogue has ids alone")
            return self.feature_columns
        found = self._known(self._rows, (columns,) if isinstance(columns, str) else names_of("columns", columns))
        if not found:
            raise InvalidInput("columns", "none", "at least one of " + ", ".join(self.columns))
        return found

    @staticmethod
    def _known(table: Table, names: Sequence[str]) -> tuple[str, ...]:
        for name in names:
            if not isinstance(name, str) or name not in table.columns:
                raise InvalidInput("columns", validate.describe(name), "columns among " + ", ".join(table.columns))
        return tuple(dict.fromkeys(names))


@storage.LOADERS.register(KIND)
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Catalogue:
    told = loose(spec)
    rows = table_of_state(told["items"], under("items/", arrays))
    fitted = rows if told["fitted"] is None else table_of_state(told["fitted"], under("fitted/", arrays))
    actions, notes = Actions.from_arrays(under("ids/", arrays)), tuple(names_of("notes", told["notes"]))
    features = Catalogue._known(fitted, names_of("features", told["features"]))
    if told["id"] not in rows.columns or len(actions) != rows.rows or set(rows.columns) != set(fitted.columns):
        raise InvalidInput("items", "ids and columns that do not fit together", "those of one catalogue")
    made = object.__new__(Catalogue)
    made._set(rows, fitted, told["id"], actions, features, notes)
    return made


def _guessed(table: Table, id: str) -> tuple[tuple[str, ...], list[str]]:
    """Columns that are features, and texts that are none: nearly every item has one of its own."""
    features, plain = [], []
    for name, column in table.columns.items():
        if name == id:
            continue
        distinct = 0 if column.categories is None else len(column.categories)
        if column.kind.name == "time" or distinct > max(1.0, MOST_SHARE * table.rows) or column.absent.all():
            plain.append(name)
        else:
            features.append(name)
    return tuple(features), plain


def _columns(table: Table, names: Sequence[str]) -> Table:
    return Table({name: table[name] for name in names}, table.rows)


def _part(table: Table, rows: Ints) -> Table:
    return Table({name: column.rows(rows) for name, column in table.columns.items()}, len(rows))


def _vectors(table: Table, names: Sequence[str]) -> Array:
    """Columns of vectors side by side; zeros where one is missing."""
    parts = [np.where(table[name].absent[:, None], 0.0, table[name].values) for name in names]
    return validate.as_floats(
        "vectors", np.nan_to_num(np.concatenate(parts, axis=1), nan=0.0, posinf=np.inf, neginf=-np.inf)
    )


def _value(column: Column, row: int) -> Value:
    """One entry as Python has it, None where it is missing."""
    if column.absent[row]:
        return None
    if column.categories is not None:
        return str(column.categories[column.values[row]])
    value = column.values[row]
    found: Value = value if column.kind.name == "vector" else value.item()
    return found


def _cell(column: Column, row: int) -> tables.Cell:
    value = _value(column, row)
    if isinstance(value, np.ndarray):
        return tables.text_of(value)
    return str(value) if isinstance(value, datetime.datetime) else value


__all__ = ["Catalogue"]

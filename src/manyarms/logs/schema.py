"""Schema: how the rows of a table become contexts and actions. It travels with whatever was learned from a log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from manyarms._base import storage, validate
from manyarms._base.nested import prefixed, under
from manyarms._base.tables import Shown
from manyarms._base.typing import AnyArray, Spec, loose
from manyarms.errors import InvalidInput
from manyarms.logs.actions import ActionId, Actions
from manyarms.logs.encoding import KIND, Encoder, EncoderLike, as_encoder

if TYPE_CHECKING:
    from manyarms.logs.data import LogSource


@runtime_checkable
class HasActions(Protocol):
    """Items with ids, such as `manyarms.Catalogue`."""

    @property
    def actions(self) -> Actions:
        """The ids."""


ActionsLike = Actions | HasActions | Iterable[ActionId]
"""What `catalogue` takes: Actions, ids in the order of the rows, or items with ids."""


@dataclass(frozen=True, repr=False)
class Schema(Shown):
    """A context encoder and action ids; None where contexts are vectors and actions are numbered already.

    A log has one (`log.schema`), and so have the agents and policies that were made from it: what they are asked and what they
    answer goes through it, and it is saved with them.

        policy = ma.load("policy")
        ma.open_log("later.csv", encoder=policy.schema.encoder, catalogue=policy.schema.catalogue)
    """

    encoder: Encoder | None = None
    catalogue: Actions | None = None

    def __post_init__(self) -> None:
        if self.encoder is not None:
            validate.instance("encoder", self.encoder, Encoder, "a TableEncoder, or None")
        if self.catalogue is not None:
            validate.instance("catalogue", self.catalogue, Actions, "Actions, the ids of a catalogue, or None")

    def __bool__(self) -> bool:
        """Whether there is an encoder, or ids."""
        return self.encoder is not None or self.catalogue is not None

    @classmethod
    def given(cls, catalogue: ActionsLike | None, encoder: EncoderLike | None) -> Schema:
        """The schema of what callers give."""
        return cls(as_encoder("encoder", encoder), as_actions("catalogue", catalogue))

    @classmethod
    def of(cls, log: LogSource) -> Schema:
        """The schema of a log; of a source that knows of neither it is empty."""
        return cls(getattr(log, "encoder", None), getattr(log, "catalogue", None))

    def beside(self, other: Schema) -> Schema:
        """This one, with what it lacks taken from another."""
        encoder = other.encoder if self.encoder is None else self.encoder
        return Schema(encoder, other.catalogue if self.catalogue is None else self.catalogue)

    def state(self) -> tuple[Spec, dict[str, AnyArray]]:
        """A JSON part and arrays that give it back: a part of what is saved for a policy or an agent."""
        spec: dict[str, storage.JSON] = {"encoder": None, "catalogue": self.catalogue is not None}
        arrays: dict[str, AnyArray] = {}
        if self.encoder is not None:
            told, made = self.encoder.state()
            spec["encoder"] = {"kind": KIND, **told}
            arrays |= prefixed("encoder/", made)
        if self.catalogue is not None:
            arrays |= prefixed("catalogue/", self.catalogue.arrays())
        return spec, arrays

    def save(self, folder: Path | str) -> None:
        """Write it to a folder of its own; `manyarms.load` reads it. What has a schema is saved with it."""
        storage.save(folder, "schema", *self.state())

    @classmethod
    def from_state(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Schema:
        """The schema that `state` came from."""
        saved = loose(spec)
        told = saved["encoder"]
        encoder = None if told is None else storage.restored(str(told["kind"]), told, under("encoder/", arrays))
        return cls(encoder, Actions.from_arrays(under("catalogue/", arrays)) if saved["catalogue"] else None)  # type: ignore[arg-type]


@storage.LOADERS.register("schema")
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Schema:
    return Schema.from_state(spec, arrays)


def as_actions(name: str, given: ActionsLike | None) -> Actions | None:
    """Ids, from whatever has them."""
    if given is None or isinstance(given, Actions):
        return given
    if isinstance(given, HasActions) and isinstance(given.actions, Actions):
        return given.actions
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | dict):
        raise InvalidInput(name, validate.describe(given), "Actions, a list of ids, or a Catalogue")
    return Actions(given.tolist() if hasattr(given, "tolist") else given)


NOTHING = Schema()

__all__ = ["NOTHING", "ActionsLike", "EncoderLike", "Schema", "as_actions", "as_encoder"]

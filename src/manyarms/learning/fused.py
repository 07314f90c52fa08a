"""Steps on a GPU without anything between them: a few launches a batch, and many batches in one replayed graph.

An objective whose terms are weight * pi or weight * log pi of the logged action needs no derivatives by PyTorch: three kernels
make a step (`triton_kernels`): log Z, the rows' derivatives, and the pass that updates every row of the table. `SLOTS` steps are
captured once as a CUDA graph. Before each replay the rows of the next batches are laid out for it, batch by batch by rising
action, so that nothing has to be sorted inside a step; how many rows a batch has and how far it steps is data on the device.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import triton
from torch import Tensor

from manyarms._base.typing import AnyArray, Ints
from manyarms.estimators.base import LinearTerms, Objective
from manyarms.learning import triton_kernels as kernels
from manyarms.learning.blockwise import SAFE
from manyarms.learning.cuda import KINDS, PRODUCTS, CudaActions
from manyarms.learning.launching import Plan, Tiles, lowered, padded, splits_of, streamed, tiles_for
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.steps import Steps
from manyarms.learning.trainable import Trainable
from manyarms.learning.windows import Window

SLOTS = 128  # batches in a graph, at most
ROWS = 1 << 15  # rows in a graph, about
NOTED = 1.0  # seconds of compiling that are worth a word
STARTS = 1 << 23  # beginnings of blocks that are kept for all batches of a graph, at most
AHEAD = 2  # replays that may wait for the device while the host prepares the next
WEIGHED = 16  # rows in a tile of `weigh_kernel`
JOINED = 128  # splits that it joins at a time
CROWDED = 8  # derivatives of its own in a block of actions, on average, from which on they join the product


class FusedSteps(Steps):
    """Steps of Adam or SGD on all rows of a table, for objectives with `linear_terms`."""

    preparing: ClassVar[str] = "compiling kernels for this GPU, which are kept for the next time"

    def __init__(
        self,
        trainable: Trainable,
        objective: Objective,
        settings: TrainingSettings,
        tiles: dict[str, Tiles] | None = None,
    ) -> None:
        super().__init__(trainable, objective, settings)
        assert isinstance(trainable.engine, CudaActions)
        self.engine: CudaActions = trainable.engine
        self.slots = 0
        self._precision, self._dtype = PRODUCTS[settings.precision]
        self._tiles = tiles or {}
        self._graph: torch.cuda.CUDAGraph | None = None
        self._captured: object = None  # what the graph was captured for
        self._form: tuple[bool, bool] | None = None
        self._terms: tuple[Window, Tensor, Tensor, tuple[bool, bool]] | None = None
        self._uploads = [_Upload() for _ in range(AHEAD + 1)]
        self._turn = 0

    def at_once(self, window: Window) -> int:
        if not self.slots:
            blocks = len(self.trainable.table.beta) // 64 + 1
            most = max(1, min(SLOTS, ROWS // self.settings.batch, STARTS // blocks))
            self.slots = min(most, int(triton.next_power_of_2(window.batches(self.settings.batch))))
        return self.slots

    def take(
        self,
        window: Window,
        batches: Sequence[tuple[Ints, int]],
        epoch: int,
        first_batch: int,
        first_step: int,
        rates: Sequence[float],
    ) -> Tensor | float:
        self.at_once(window)
        weights, limit, form = self._of(window)
        self.engine.bring_up_to_date()
        if self._form != form:
            self._make(*form)
        self._turn = (self._turn + 1) % len(self._uploads)
        upload = self._uploads[self._turn]
        upload.wait()  # what was laid out in this memory before has been read
        self._lay(window, weights, batches, upload)
        self._limit.copy_(limit)
        self._pace(batches, rates, upload)
        self._replay()
        upload.mark(self.trainable.device)
        if len(batches) % 2:  # each step writes the reach that the next one reads, to the other of two places
            self.engine.reach[0].copy_(self.engine.reach[1])
        return self._values.sum()

    # ---- what is known once

    def _of(self, window: Window) -> tuple[Tensor, Tensor, tuple[bool, bool]]:
        """The weights of a window's rows, the largest norm of features; whether log pi is weighted, any weight negative."""
        if self._terms is None or self._terms[0] is not window:
            terms: LinearTerms | None = self.objective.linear_terms(window.log)
            assert terms is not None
            weights = torch.tensor(terms.weights, dtype=torch.float32, device=self.trainable.device)
            with torch.no_grad():
                most = [self.trainable.features(part).norm(dim=1).max() for part in torch.split(window.contexts, ROWS)]
            form = terms.of_log, bool((terms.weights < 0).any())
            self._terms = window, weights, torch.stack(most).max()[None], form
        return self._terms[1:]

    def _make(self, of_log: bool, signed: bool) -> None:
        """Room for everything that the kernels read and write, at addresses that stay."""
        self._form, self._signed, self._graph = (of_log, signed), signed, None
        table, device, batch, slots = self.trainable.table, self.trainable.device, self.settings.batch, self.slots
        actions, width = table.beta.shape
        self._step_tiles, self._normaliser_tiles = self._tile("step", width), self._tile("normaliser", width)
        crowded = batch * self._step_tiles.actions > CROWDED * actions
        self._kind, self._of_log, self._crowded = KINDS[table.kind], of_log, crowded
        self._splits, self._per_split = splits_of(batch, actions, self._normaliser_tiles, device)
        self._blocks = int(triton.cdiv(actions, self._step_tiles.actions))
        self._row_tiles = int(triton.cdiv(batch, WEIGHED))

        def room(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        scaled = self._step_tiles.scaled, self._normaliser_tiles.scaled
        self._plan = Plan(slots, device)
        self._full = room(slots * batch, width)
        # both kernels read the same features unless one wants them scaled and the other not
        self._low = {one: room(slots * batch, width, dtype=self._dtype) for one in set(scaled)}
        self._ids = room(slots * batch, dtype=torch.int32)
        self._index = room(2, slots * batch, dtype=torch.int64)
        self._weights = room(slots * batch)
        self._starts = room(slots, self._blocks + 1, dtype=torch.int32)
        self._top, self._sum = room(self._splits, batch), room(self._splits, batch)
        self._shift, self._sign, self._single = room(batch), room(batch), room(batch)
        self._values = room(slots, self._row_tiles)
        self._tables = streamed(self.engine.low, self._normaliser_tiles.actions, self._normaliser_tiles)
        self._features = streamed(self._low[self._step_tiles.scaled], self._step_tiles.rows, self._step_tiles)
        self._limit = room(1)
        edges = torch.arange(self._blocks + 1, device=device, dtype=torch.int64) * self._step_tiles.actions
        numbers = torch.arange(slots, device=device, dtype=torch.int64)
        self._edges = (numbers[:, None] * actions + edges.clamp(max=actions)).reshape(-1)

    def _tile(self, kernel: str, width: int) -> Tiles:
        return self._tiles.get(kernel) or tiles_for(kernel, width, self._dtype, self._signed)

    # ---- before a replay

    def _lay(self, window: Window, weights: Tensor, batches: Sequence[tuple[Ints, int]], upload: _Upload) -> None:
        """The rows of the batches one after another, each batch by rising action."""
        lengths = np.array([len(index) for index, _ in batches])
        count, actions = int(lengths.sum()), len(self.trainable.table.beta)
        whole = np.zeros((3, self.slots), dtype=np.int32)
        whole[0, : len(batches)], whole[1, : len(batches)], whole[2, : len(batches)] = (
            lengths.cumsum() - lengths,
            lengths,
            1,
        )
        upload.send("whole", whole, self._plan.whole)
        if not count:
            self._starts.zero_()
            return
        index = np.stack([np.concatenate([index for index, _ in batches]), np.repeat(np.arange(len(batches)), lengths)])
        rows, slots = upload.send("index", index, self._index[:, :count])
        ids = window.ids[:, 0].index_select(0, rows)
        keys, order = torch.sort(torch.add(ids, slots, alpha=actions), stable=True)
        rows = rows.index_select(0, order)
        with torch.no_grad():
            features = self.trainable.features(window.contexts.index_select(0, rows))
        self._full[:count] = features
        for scaled, low in self._low.items():
            low[:count] = lowered(features, self._dtype, scaled)
        self._ids[:count] = ids.index_select(0, order)
        torch.index_select(weights, 0, rows, out=self._weights[:count])
        if not self._crowded:
            self._starts.view(-1).copy_(torch.searchsorted(keys, self._edges))

    def _pace(self, batches: Sequence[tuple[Ints, int]], rates: Sequence[float], upload: _Upload) -> None:
        """Rates, Adam's scales and sizes of the batches; the table has taken that many steps more."""
        pace, table = np.ones((3, self.slots), dtype=np.float32), self.trainable.table
        self.trainable.begin(rates[0])
        for number, ((_, size), rate) in enumerate(zip(batches, rates, strict=True)):
            table.steps, table.rate = table.steps + (number > 0), rate
            pace[:2, number] = table.rates()
            pace[2, number] = size
        upload.send("pace", pace, self._plan.pace)

    # ---- the steps themselves

    def _replay(self) -> None:
        """All slots; captured at the first time, and again where the table lies elsewhere."""
        if self.trainable.device.type != "cuda":
            return self._launch_all()
        table = self.trainable.table
        now = (table.beta.data_ptr(), self.engine.low.data_ptr(), *(m.data_ptr() for m in table.moments.values()))
        if self._graph is None or self._captured != now:
            self._compile()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # a thread that reads ahead may allocate
                self._launch_all()
            self._graph, self._captured = graph, now
        self._graph.replay()

    def _compile(self) -> None:
        """Launch every kernel once on no rows and no batch: compiling is not allowed inside a capture."""
        kept, began = (self._plan.whole.clone(), self.engine.reach.clone()), time.perf_counter()
        self._plan.whole.zero_()
        self._launch(0)
        if (spent := time.perf_counter() - began) > NOTED:
            self.notes = (f"compiling kernels for this GPU took {spent:.1f} s; Triton keeps them for the next run",)
        self._plan.whole.copy_(kept[0])
        self.engine.reach.copy_(kept[1])

    def _launch_all(self) -> None:
        for slot in range(self.slots):
            self._launch(slot)

    def _launch(self, slot: int) -> None:
        """The three kernels of a step."""
        table, engine, plan, batch = self.trainable.table, self.engine, self._plan, self.settings.batch
        actions, width = table.beta.shape
        whole = padded(width)
        n, s, even = self._normaliser_tiles, self._step_tiles, whole == width
        kernels.normaliser_kernel[(triton.cdiv(batch, n.rows), self._splits)](
            self._low[n.scaled], self._tables, plan.whole, self._limit, engine.reach, self._top, self._sum, slot, plan.slots,
            batch, actions, width, self._per_split, SAFE=SAFE, SCALED=n.scaled, MIXED=n.mixed, EVEN=even, BM=n.rows, BN=n.actions,
            D=whole, PRECISION=self._precision, BULK=n.bulk, HELD=n.held, num_warps=n.warps, num_stages=n.stages,
        )  # fmt: skip
        kernels.weigh_kernel[(self._row_tiles,)](
            self._full, table.beta, self._ids, self._weights, plan.whole, plan.pace, engine.reach, self._top, self._sum,
            self._shift, self._sign, self._single, self._values, slot, plan.slots, batch, self._splits, width, self._row_tiles,
            LOG=self._of_log, BM=WEIGHED, BS=JOINED, D=whole, num_warps=4,
        )  # fmt: skip
        spare: Any = self._shift
        first, second = (table.moments["first"], table.moments["second"]) if table.kind == "adam" else (spare, spare)
        kernels.step_kernel[(self._blocks,)](
            self._features, self._full, engine.low, self._shift, self._sign, self._starts[slot], spare, self._ids,
            self._single, table.beta, first, second, spare if table.anchor is None else table.anchor, spare, plan.whole,
            plan.pace, engine.reach, slot, plan.slots, actions, width, table.pull, KIND=self._kind, SIGNED=self._signed,
            PULLED=table.pull != 0, ANCHORED=table.anchor is not None, LOW=engine.low is not table.beta, SCALED=s.scaled,
            MIXED=s.mixed, EVEN=even, OWN=True, DENSE=self._crowded, BK=s.actions, BM=s.rows, D=whole,
            PRECISION=self._precision, PARTS=s.parts, BULK=s.bulk, HELD=s.held,
            num_warps=s.warps, num_stages=s.stages,
        )  # fmt: skip


class _Upload:
    """Memory of the host from which a GPU copies by itself, used again once it has."""

    def __init__(self) -> None:
        self._host: dict[str, Tensor] = {}
        self._read: torch.cuda.Event | None = None

    def send(self, name: str, array: AnyArray, place: Tensor) -> Tensor:
        """An array to its place on the device; to a GPU without waiting for what it is doing."""
        found = torch.from_numpy(array)
        if place.device.type == "cuda":
            held = self._host.get(name)
            if held is None or held.numel() < found.numel():
                held = self._host[name] = torch.empty(found.numel(), dtype=found.dtype, pin_memory=True)
            found = held[: found.numel()].view(found.shape).copy_(found)
        return place.copy_(found, non_blocking=True)

    def mark(self, device: torch.device) -> None:
        """All that was sent is read when the device gets here."""
        if device.type == "cuda":
            self._read = self._read or torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._read.record()

    def wait(self) -> None:
        """Until it has."""
        if self._read is not None:
            self._read.synchronize()


__all__ = ["FusedSteps"]

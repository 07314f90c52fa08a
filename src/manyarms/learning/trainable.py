"""A policy while it is being trained: its table of parameters, its encoder, its lists; and the way back to plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manyarms._base import validate
from manyarms._base.nested import prefixed
from manyarms._base.private import locked
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.learning.dense import DenseActions, sigma_table
from manyarms.learning.device_table import DeviceTable
from manyarms.learning.encoders import TorchEncoder, from_torch, to_torch
from manyarms.learning.engines import AllActions, Clusters, Engine, ListedActions
from manyarms.learning.optimisers import ParameterTable
from manyarms.learning.peers import Peers
from manyarms.learning.results import Learnable, require_learnable
from manyarms.learning.sampled import Sampler
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.sharded import DividedRows, ShardedActions, ShardedLists
from manyarms.logs.data import LoggedData
from manyarms.policies.encoders import ContextEncoder
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.policies.softmax import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.policies.support_softmax import places as logged_places
from manyarms.policies.two_stage import TwoStagePolicy

Randomised = (GaussianPolicy, MixedLogitPolicy)
LARGEST_SINGLE = 1e18  # the product of two such numbers is finite in single precision


@dataclass
class EncoderInTraining:
    """The module that makes features of contexts, its optimiser, and where its parameters are pulled to."""

    module: torch.nn.Module
    optimiser: torch.optim.Optimizer | None  # None: it is not trained
    pull: float
    anchors: list[Tensor]
    sum_over: Peers | None = None  # processes that have gradients of other rows of the batch

    def begin(self, rate: float) -> None:
        """A new step with this learning rate."""
        for group in () if self.optimiser is None else self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):  # a number on the device, which captured steps read
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def step(self) -> None:
        """One step down the gradients that are there."""
        if self.optimiser is None:
            return
        if self.sum_over is not None:
            self._sum_gradients(self.sum_over)
        if self.pull:
            for parameter, anchor in zip(self.module.parameters(), self.anchors, strict=True):
                if parameter.grad is not None:
                    parameter.grad.add_(parameter.detach() - anchor, alpha=self.pull)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def _sum_gradients(self, peers: Peers) -> None:
        """Over all processes. Rows of one of them may not have met a parameter that others' have: each says which it has."""
        parameters = list(self.module.parameters())
        own = [torch.zeros_like(one) if one.grad is None else one.grad for one in parameters]
        has = own[0].new_tensor([one.grad is not None for one in parameters])
        *summed, met = peers.sum(*own, has)
        for parameter, gradient, some in zip(parameters, summed, met.tolist(), strict=True):
            parameter.grad = gradient.clone() if some else None


def require_precision(argument: str, what: str, largest: float, dtype: torch.dtype) -> None:
    """Refuse numbers whose products would be infinite in single precision."""
    if dtype == torch.float32 and not largest < LARGEST_SINGLE:
        expected = f"{what} below {LARGEST_SINGLE:g} in size, or precision='fp64'"
        raise InvalidInput(argument, f"{what} up to {largest:.3g}", expected)


class Trainable:
    """A policy in training; with peers, this process has a share: rows of a table that is learned, else rows of batches."""

    def __init__(
        self,
        policy: Learnable,
        log: LoggedData,
        settings: TrainingSettings,
        distance: float,
        device: torch.device,
        all_actions: bool = False,
        peers: Peers | None = None,
    ) -> None:
        require_learnable(policy)
        if policy.action_count != log.action_count:
            raise InvalidInput(
                "policy",
                f"parameters for {policy.action_count} actions",
                f"one row for each of the log's {log.action_count}",
            )
        if policy.dim is not None and policy.dim != log.dim:
            raise InvalidInput("policy", f"contexts of length {policy.dim}", f"contexts of the log's length {log.dim}")
        self.device = device
        # not the policy itself: its parameters are copied below, and nobody may need the original ones any longer
        self.temperature, self.encoder = getattr(policy, "temperature", 1.0), policy.encoder
        self.all_actions = all_actions
        self._remake = _remake(policy)
        self.dtype = torch.float64 if settings.precision == "fp64" else torch.float32
        start = policy.clusters if isinstance(policy, TwoStagePolicy) else policy.actions
        train = settings.train or ("actions" if policy.encoder is None else "encoder")
        if train != "actions" and policy.encoder is None:
            raise InvalidInput("train", repr(train), "'actions': the policy has no encoder")
        pull = settings.l2 + distance
        # l2/2 ||theta - a||^2 + distance/2 ||theta - start||^2 is one pull to a point between a and the start, but for a constant
        to_start = 0.0 if not pull else (distance + (settings.l2 if settings.towards == "start" else 0.0)) / pull
        require_precision("policy", "parameters", max(float(start.max()), -float(start.min())), self.dtype)
        learns_table = train in ("actions", "both")
        self.peers, self.rows = peers, len(start)
        self.own = slice(0, len(start)) if peers is None or not learns_table else peers.share(len(start))
        beta = torch.tensor(np.asarray(start)[self.own], dtype=self.dtype, device=device)
        anchor = beta * to_start if to_start else None
        if settings.l2 and settings.towards == "logging":
            own = self.temperature * _logging_parameters(log, np.shape(start))[self.own]  # scores are h^T beta / T
            logging = torch.tensor(own, dtype=self.dtype, device=device) * (1 - to_start)
            anchor = logging if anchor is None else anchor + logging
        kind = DeviceTable if device.type == "cuda" and peers is None else ParameterTable
        table = kind(beta, settings.optimiser, pull=pull, anchor=anchor, learned=learns_table)
        self.encoding = self._encoding(settings, train, pull, to_start)
        self.sampler: Sampler | None = settings.sampler
        if peers is None:
            self.engine = self._engine(policy, table, learns_table, settings)
        else:
            self.engine = self._shared_engine(policy, table, learns_table, peers)
        self._support = policy.restricts_to if isinstance(policy, SupportSoftmaxPolicy) else None

    @property
    def table(self) -> ParameterTable:
        """beta and its optimiser."""
        return self.engine.table

    @property
    def tables(self) -> dict[str, ParameterTable]:
        """All tables by what they hold."""
        return {"beta": self.table, **self.engine.extra}

    @property
    def learns_encoder(self) -> bool:
        """Whether gradients of features are wanted."""
        return self.encoding is not None and self.encoding.optimiser is not None

    @property
    def divides_batches(self) -> bool:
        """Whether this process answers for some rows of a batch only."""
        return isinstance(self.engine, DividedRows)

    def batch_features(self, x: Tensor) -> Tensor:
        """h at the rows of a batch that this process answers for."""
        if self.peers is not None and self.divides_batches:
            x = x[self.peers.share(len(x))]
        return self.features(x)

    def features(self, x: Tensor) -> Tensor:
        """h = phi(x) / T."""
        h = x if self.encoding is None else self.encoding.module(x)
        return h / self.temperature if self.temperature != 1.0 else h

    def lists_of(self, log: LoggedData) -> Ints | None:
        """The actions on offer, row by row, where they are few: from the log, or else from the policy that restricts."""
        if self._support is None:
            return None
        lists, played = log.support, log.support_probabilities
        if lists is None:
            lists, played = self._support.support(log.contexts)
        if played is not None and not (played > 0).all():
            lists = np.where(played > 0, lists, -1)
        logged_places(lists, log.actions)  # refuses a support without the logged action
        return lists

    def policy(self) -> Learnable:
        """The policy of the parameters as they are now: plain arrays, no torch."""
        return self.policy_of(self.parameters())

    def parameters(self) -> dict[str, AnyArray]:
        """Copies of all that is learned."""
        out = as_arrays({name: table.beta for name, table in self.tables.items()})
        if self.encoding is not None:
            out |= prefixed("encoder/", as_arrays(self.encoding.module.state_dict()))
        return {name: locked(array.copy()) for name, array in out.items()}

    def whole(self, parameters: dict[str, AnyArray]) -> dict[str, AnyArray] | None:
        """What `parameters` gave in all processes together; None in those that are not the first."""
        if self.peers is None:
            return parameters
        if not self.divides_batches:
            beta = self.peers.gathered(torch.tensor(parameters["beta"]), self.rows)
            return None if beta is None else {**parameters, "beta": locked(beta)}
        return parameters if self.peers.first else None

    def policy_of(self, parameters: dict[str, AnyArray]) -> Learnable:
        """The policy of parameters that `parameters` gave."""
        encoder = self.encoder
        # one that was not learned is the start's own, to the last digit; a module's arrays are taken out of it in any case
        made = self.learns_encoder or isinstance(encoder, TorchEncoder)
        if self.encoding is not None and encoder is not None and made:
            encoder = from_torch(encoder, self.encoding.module, parameters)
        return self._remake(parameters, encoder)

    def begin(self, rate: float) -> None:
        """A new step of everything that has a table."""
        for table in self.tables.values():
            table.begin(rate)
        if self.encoding is not None:
            self.encoding.begin(rate)

    def finish(self) -> None:
        """The step is over."""
        for table in self.tables.values():
            table.finish()

    # ---- parts

    def _encoding(
        self, settings: TrainingSettings, train: str, pull: float, to_start: float
    ) -> EncoderInTraining | None:
        if self.encoder is None:
            return None
        module = to_torch(self.encoder).to(self.device, self.dtype)
        optimiser: torch.optim.Optimizer | None = None
        if train != "actions":
            kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}
            rate: float | Tensor = settings.learning_rate
            captured: dict[str, bool] = {}
            if self.device.type == "cuda" and settings.optimiser == "adam":
                rate, captured = torch.tensor(rate, dtype=self.dtype, device=self.device), {"capturable": True}
            optimiser = kinds[settings.optimiser](module.parameters(), lr=rate, **captured)
        else:
            module.requires_grad_(False).eval()  # nor may it keep statistics of the rows it sees, as batch norms do
        anchors = [p.detach() * to_start for p in module.parameters()]
        return EncoderInTraining(module, optimiser, pull, anchors, self.peers if train == "encoder" else None)

    def _engine(
        self, policy: Learnable, table: ParameterTable, learns_table: bool, settings: TrainingSettings
    ) -> Engine:
        if isinstance(policy, TwoStagePolicy):
            labels = torch.tensor(policy.labels, device=self.device)
            weights = torch.tensor(np.asarray(policy.model), dtype=self.dtype, device=self.device)
            return Clusters(table, labels, weights, learns_table)
        if isinstance(policy, Randomised):
            family = "gaussian" if isinstance(policy, GaussianPolicy) else "mixed-logit"
            log_sigma = sigma_table(policy.sigma, settings.optimiser, self.dtype, self.device)
            return DenseActions(
                table,
                family,
                learns_table,
                log_sigma=log_sigma,
                learns_sigma=settings.learn_sigma,
                draws=settings.draws,
                **({"nodes": policy.nodes} if isinstance(policy, GaussianPolicy) else {}),
            )
        if self.all_actions and isinstance(policy, SoftmaxPolicy):
            return DenseActions(table, "softmax", learns_table)
        if self.all_actions:
            raise InvalidInput("policy", repr(policy), "a policy over all actions, for this objective")
        if isinstance(policy, SupportSoftmaxPolicy) or settings.sampler is not None:
            return ListedActions(table, learns_table)
        if self.device.type == "cuda" and settings.precision != "fp64":
            from manyarms.learning.cuda import CudaActions

            return CudaActions(table, learns_table, settings.precision)
        return AllActions(table, learns_table)

    def _shared_engine(self, policy: Learnable, table: ParameterTable, learns_table: bool, peers: Peers) -> Engine:
        """Of several processes; what cannot be divided among them is refused before they are started (`processes.py`)."""
        if self.all_actions:
            came = "one that looks at every action of every row, which several processes cannot climb together"
            raise InvalidInput("objective", came, "another objective, or one process: on='local' without workers")
        listed = isinstance(policy, SupportSoftmaxPolicy)
        if learns_table:
            return (ShardedLists if listed else ShardedActions)(table, peers, self.own.start)
        return DividedRows((ListedActions if listed else AllActions)(table, learns_table=False), peers)


def as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, AnyArray]:
    """Tensors as arrays, which share their memory where they can."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


Remake = Callable[[dict[str, AnyArray], ContextEncoder | None], Learnable]


def _remake(policy: Learnable) -> Remake:
    """How to make a policy of the same kind from other parameters."""
    if isinstance(policy, GaussianPolicy):
        nodes = policy.nodes
        return lambda new, encoder: GaussianPolicy(new["beta"], _sigma(new), encoder, nodes)
    if isinstance(policy, MixedLogitPolicy):
        draws, seed = policy.draws, policy.seed
        return lambda new, encoder: MixedLogitPolicy(new["beta"], _sigma(new), encoder, draws, seed)
    temperature = policy.temperature
    if isinstance(policy, TwoStagePolicy):
        labels, model = policy.labels, policy.model
        return lambda new, encoder: TwoStagePolicy(new["beta"], labels, model, temperature, encoder)
    if isinstance(policy, SupportSoftmaxPolicy):
        support = policy.restricts_to
        return lambda new, encoder: SupportSoftmaxPolicy(new["beta"], support, temperature, encoder)
    return lambda new, encoder: SoftmaxPolicy(new["beta"], temperature, encoder)


def _sigma(parameters: dict[str, AnyArray]) -> float:
    return float(np.exp(parameters["log_sigma"][0, 0]))


def _logging_parameters(log: LoggedData, shape: tuple[int, ...]) -> Array:
    """beta of the logging policy, where it is a softmax of the same kind."""
    logging = log.logging
    if not isinstance(logging, SoftmaxPolicy | TopSoftmaxPolicy):
        raise InvalidInput("towards", "'logging'", "a log whose logging policy is a softmax (or 'zero', or 'start')")
    return validate.as_array("log.logging", np.asarray(logging.actions) / logging.temperature, shape)


__all__ = ["EncoderInTraining", "Learnable", "Trainable", "as_arrays"]

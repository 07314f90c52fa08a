"""What several processes do in tests of learning together: here and not in a test, so that they can import it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

from manyarms.estimators import (
    BPR,
    DM,
    DR,
    ES,
    ESLPI,
    IPS,
    IX,
    LPI,
    LS,
    MIPS,
    PC,
    SNDR,
    SNIPS,
    Distance,
    ESBeta,
    OffCEM,
    RegKL,
    RegKLLinear,
    SampleVariance,
    cIPS,
    cLPI,
)
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.encoders import Layers, Projection
from manyarms.policies.support_softmax import SupportSoftmaxPolicy

ROWS, K, D = 40, 23, 4
rng = np.random.default_rng(0)
BETA, MODEL, LABELS = rng.normal(size=(K, D)), rng.normal(size=(K, D)) * 0.3, np.arange(K) % 5
LOGGING = TopSoftmaxPolicy(rng.normal(size=(K, D)), k0=9)


class LinearRewards:
    """x^T w_a, as a reward model."""

    action_count, dim, weights = K, D, MODEL

    def predict(self, X, actions):
        return np.einsum("nd,nd->n", X, MODEL[actions])

    def block(self, X, ids):
        return X @ MODEL[ids].T


class Bent(LinearRewards):
    """A model that is not linear."""

    weights = None

    def predict(self, X, actions):
        return np.tanh(super().predict(X, actions))

    def block(self, X, ids):
        return np.tanh(super().block(X, ids))


def a_log(seed: int = 1, rows: int = ROWS) -> LoggedData:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, D))
    ids, p = LOGGING.support(X)
    column = (draw.random((rows, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(max=8)
    at = np.arange(rows)
    return LoggedData(
        X, ids[at, column], (draw.random(rows) < 0.6).astype(float), K, p[at, column],
        support=ids, support_probabilities=p, logging=LOGGING,
    )  # fmt: skip


OBJECTIVES = [
    LPI(), cLPI(0.1), ESLPI(0.7), RegKL(0.5), RegKLLinear(0.5), IPS(), cIPS(0.2), ES(0.6), ESBeta(0.5), IX(0.1),
    SNIPS(), LS(0.2), LS(0.2, linear=False), DM(LinearRewards()), DR(LinearRewards()), DR(Bent()), SNDR(Bent()), MIPS(LABELS),
    OffCEM(LABELS, LinearRewards()), OffCEM(LABELS, Bent()), PC(BETA, k=4), SampleVariance(cIPS(0.1), 0.3), BPR(3),
    Distance(cIPS(0.1), 0.7),
]  # fmt: skip
DEEP = Layers([rng.normal(size=(D, 6)), rng.normal(size=(6, D))], [rng.normal(size=6), np.zeros(D)], "tanh")
POLICIES = {
    "heavy": (SoftmaxPolicy(BETA), "actions"),
    "cool": (SoftmaxPolicy(BETA, temperature=0.5), "actions"),
    # scores of hundreds, and the largest ones in one process: everything is shifted by what another process has
    "steep": (SoftmaxPolicy(BETA * np.where(np.arange(K) < K // 2, 1.0, 100.0)[:, None]), "actions"),
    "light": (SoftmaxPolicy(BETA, encoder=Projection(rng.normal(size=(D, D)))), "encoder"),
    "deep": (SoftmaxPolicy(BETA, encoder=DEEP), "encoder"),
    "both": (SoftmaxPolicy(BETA, encoder=DEEP), "both"),
    "listed": (SupportSoftmaxPolicy(BETA, LOGGING), "actions"),
    "listed, light": (SupportSoftmaxPolicy(BETA, LOGGING, encoder=Projection(rng.normal(size=(D, D)))), "encoder"),
}
# neighbours and random actions lie outside of lists
PAIRS = [(o, kind) for o in OBJECTIVES for kind in POLICIES if not (o.name in ("pc", "bpr") and "listed" in kind)]


def steps_compared(precision: str) -> list[dict[str, object]]:
    """One step of every objective and every kind of policy, by this process alone and by all together: value and gradients."""
    from manyarms.learning.loop import TrainingRun
    from manyarms.learning.peers import Peers
    from manyarms.learning.traffic import Seen, numbers_sent

    log, index, peers, found = a_log(), np.arange(5, 37), Peers(), []
    for objective, kind in PAIRS:
        policy, train = POLICIES[kind]
        settings = TrainingSettings(optimiser="sgd", precision=precision, train=train, learning_rate=1.0)
        outcomes = []
        for others in (None, peers):
            run = TrainingRun(log, policy, objective, settings, "cpu", others)
            before, reduced = run.trainable.whole(run.trainable.parameters()), peers.reduced
            value = float(run.step_on(index, rate=1.0))
            reduced = peers.reduced - reduced
            after = run.trainable.whole(run.trainable.parameters())
            gradients = {} if after is None else {name: before[name] - after[name] for name in after}
            outcomes.append((value, gradients))
        active = len(run.window.rows_of(index)[0])
        encoding = run.trainable.encoding
        sizes = [] if encoding is None else [p.numel() for p in encoding.module.parameters()]
        model = numbers_sent(
            active, D, peers.count, Seen.of(run.asked), train=train, encoder=sum(sizes), tensors=len(sizes),
            listed=run.window.lists.shape[1] if kind == "listed" else 0,
        )  # fmt: skip
        found.append(
            {
                "what": f"{objective.label}, {kind}",
                "alone": outcomes[0],
                "together": outcomes[1],
                "model": model,
                "reduced": reduced,
            }
        )
    return found


def large_steps(actions: int) -> list[float]:
    """The largest difference that several steps over many blocks of actions leave, over the largest number."""
    from manyarms.learning.loop import TrainingRun
    from manyarms.learning.peers import Peers

    draw = np.random.default_rng(2)
    X, beta = draw.normal(size=(64, D)), draw.normal(size=(actions, D))
    logging = SoftmaxPolicy(np.zeros((actions, D)))
    log = LoggedData(
        X, draw.integers(0, actions, 64), draw.random(64), actions, np.full(64, 1 / actions), logging=logging
    )
    peers, found = Peers(), []
    for objective in (cIPS(0.05), MIPS(np.arange(actions) % 50)):
        settings = TrainingSettings(optimiser="sgd", precision="fp64")
        wholes = []
        for others in (None, peers):
            run = TrainingRun(log, SoftmaxPolicy(beta), objective, settings, "cpu", others)
            for _ in range(3):
                run.step_on(np.arange(64), rate=1.0)
            wholes.append(run.trainable.whole(run.trainable.parameters()))
        if wholes[1] is not None:
            found.append(
                float(np.abs(wholes[1]["beta"] - wholes[0]["beta"]).max() / np.abs(wholes[0]["beta"] - beta).max())
            )
    return found


BATCHES = (
    np.arange(5, 37),
    np.arange(1),
    np.arange(2),
    np.arange(3, 40),
)  # also of fewer rows than there are processes


def many_steps_compared(optimiser: str) -> list[dict[str, object]]:
    """Several steps with an optimiser that remembers, pulled to zero, by this process alone and by all together."""
    from manyarms.learning.loop import TrainingRun
    from manyarms.learning.peers import Peers

    peers, found = Peers(), []
    settings = {"optimiser": optimiser, "precision": "fp64", "learning_rate": 0.05, "l2": 0.1}
    for objective in (SNIPS(), cIPS(0.1), DR(LinearRewards()), MIPS(LABELS), Distance(SNIPS(), 2.0)):
        for kind in ("heavy", "deep", "both", "listed", "listed, light"):
            policy, train = POLICIES[kind]
            outcomes = []
            for others in (None, peers):
                run = TrainingRun(a_log(), policy, objective, TrainingSettings(train=train, **settings), "cpu", others)
                values = [float(run.step_on(index, batch=n, step=n, rate=0.05)) for n, index in enumerate(BATCHES)]
                outcomes.append((values, run.trainable.whole(run.trainable.parameters())))
            found.append({"what": f"{objective.label}, {kind}", "alone": outcomes[0], "together": outcomes[1]})
    return found


def either_way() -> list[dict[str, np.ndarray]]:
    """A step of an encoder whose layers see some rows each, where each process has rows for one layer alone."""
    import torch

    from manyarms.learning import TorchEncoder
    from manyarms.learning.loop import TrainingRun
    from manyarms.learning.peers import Peers

    class Either(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.one, self.other = torch.nn.Linear(D, D), torch.nn.Linear(D, D)

        def forward(self, x):
            out = x.new_zeros(x.shape)
            for rows, layer in (
                ((x[:, 0] > 0).nonzero()[:, 0], self.one),
                ((x[:, 0] <= 0).nonzero()[:, 0], self.other),
            ):
                if len(rows):
                    out = out.index_put((rows,), layer(x[rows]))
            return out

    log, peers, found = a_log(), Peers(), []
    contexts = log.contexts.copy()
    contexts[:, 0] = np.where(np.arange(ROWS) % 8 < 4, 1.0, -1.0)
    log = LoggedData(contexts, log.actions, log.rewards, K, log.propensities)
    settings = TrainingSettings(optimiser="sgd", train="encoder", precision="fp64", learning_rate=1.0)
    for others in (None, peers):
        policy = SoftmaxPolicy(BETA, encoder=TorchEncoder(Either(), D, D))
        run = TrainingRun(log, policy, DM(LinearRewards()), settings, "cpu", others)
        run.step_on(np.arange(8), rate=1.0)
        module = run.trainable.encoding.module
        found.append({name: one.detach().numpy().copy() for name, one in module.named_parameters()})
    return found


def looks_after_resuming(step: int) -> int:
    """In how many steps the clock is looked at again, after 20 ms for the first step of a run that goes on from a late one."""
    import tempfile
    import time

    from manyarms.learning.checkpoints import TrainingState
    from manyarms.learning.peers import Peers
    from manyarms.learning.shard_checkpoints import ShardCheckpoints

    with tempfile.TemporaryDirectory() as folder:
        made = ShardCheckpoints(folder, "run", 60.0, Peers(), divided=True)
        made._current = lambda: step
        made._whole = lambda found, trainable: TrainingState(step=found)
        made.resume(None)
        time.sleep(0.02)
        return made._due(step + 1)[1]


class Watched(cIPS):
    """An objective that writes down how often it was asked, and at one moment kills the process that asks."""

    def __init__(self, folder: Path, at: int, rank: int) -> None:
        super().__init__(0.1)
        self.folder, self.at, self.rank, self.asked = Path(folder), at, rank, 0

    def value(self, answers, batch):
        import torch.distributed as together

        self.asked += 1
        rank = together.get_rank()
        with (self.folder / f"asked-{rank}").open("a") as stream:
            stream.write("x")
        if self.asked == self.at and rank == self.rank and not (self.folder / "killed").exists():
            (self.folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().value(answers, batch)

    def times_asked(self, rank: int = 0) -> int:
        return len((self.folder / f"asked-{rank}").read_text())


def worth(policy) -> float:
    """A score of a policy."""
    return float(policy.probabilities_of(np.ones((1, D)), np.zeros(1, dtype=int))[0])

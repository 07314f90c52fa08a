"""Rewards that drift: a model of it (`Drift`), discounting (`Discount`) and sliding windows (`SlidingWindow`).

belief_of(prior, likelihood, drift=Drift(half_life=5_000))        # and `drift=` of every named agent
"""

from manyarms.beliefs.drift.memory import MEMORIES, Forgetting, Memory
from manyarms.beliefs.drift.settings import Discount, Drift, SlidingWindow

__all__ = ["MEMORIES", "Discount", "Drift", "Forgetting", "Memory", "SlidingWindow"]

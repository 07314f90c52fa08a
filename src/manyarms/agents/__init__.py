"""Agents: a belief, a decision rule and a stream of random numbers; named combinations of the three."""

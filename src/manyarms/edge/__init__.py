"""Decisions at the edge: a signed policy that a phone, a worker of a CDN or another data centre evaluates by itself.

    policy = manyarms.edge.EdgePolicy.read(data, public_key)     # bytes of GET /v1/edge/{agent}, key of GET /v1/edge/key
    d = policy.decide(context, candidates=[...])                  # d.action, and exactly how likely it was
    d.as_json()                                                   # for POST /v1/edge/{agent}/decisions, when there is time

It needs NumPy alone, and `cryptography` to check the signature.
"""

from manyarms.edge.header import EdgeId, Header
from manyarms.edge.policy import EdgeDecision, EdgePolicy
from manyarms.edge.signing import SigningKey

__all__ = ["EdgeDecision", "EdgeId", "EdgePolicy", "Header", "SigningKey"]

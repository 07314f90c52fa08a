"""A shop's clicks: from CSV files with SKUs to a policy that says what to show.

python examples/shop.py [clicks.csv items.csv]      made-up files without them; FULL=1: 200,000 clicks, 30,000 SKUs
"""

import sys

import made_up

import manyarms as ma

clicks, items = sys.argv[1:3] if len(sys.argv) > 2 else made_up.shop()
catalogue = ma.Catalogue(items, id="sku")
log = ma.open_log(clicks, catalogue=catalogue.actions)  # which column is what is guessed from the names, and said
print(ma.inspect(log))  # what is in it, and what is wrong with it

train, test = log.split(0.7, by="time")
print(ma.evaluate("uniform", test))  # what showing anything would have earned

policy = ma.SoftmaxPolicy(actions=catalogue.embeddings(["category", "price"]))
found = ma.learn(train, policy, ma.cLPI(), learning_rate=0.03, seed=0)
print(ma.evaluate(found.policy, test).verdict())

found.policy.save("shop-policy")
policy = ma.load("shop-policy")  # tomorrow, in another process
print(policy.decide({"device": "phone", "age": 31}, k=5, exclude=["SKU-00017"]))

"""One message for each user who comes, learned while they come: contexts are dictionaries, messages have ids and topics.

python examples/notifications.py        FULL=1: 100,000 notifications
"""

import made_up

import manyarms as ma

app = made_up.Notifications()  # your own messages, users and openings in its place
messages = ma.Catalogue(app.messages, id="message")
known = list(app.users(500))  # some users of the past: which columns there are, and which texts
encoder = ma.logs.Encoding().fit({name: [user[name] for user in known] for name in known[0]}, list(known[0]))

# a message shares what is learned with the others of its topic
agent = ma.meTS(messages.prior(encoder.dim, "topic"), ma.Linear(0.5), catalogue=messages, encoder=encoder, seed=0)
opened = []
for user in app.users():
    message = agent.decide(user, exclude=["msg-17"])  # an id; 17 may not be sent today
    opened.append(app.opened(user, message))
    agent.observe(user, message, opened[-1])
half = len(opened) // 2
first, second = sum(opened[:half]) / half, sum(opened[half:]) / (len(opened) - half)
print(f"opened: {first:.1%} in the first half, {second:.1%} in the second")

agent.save("notifications")
agent = ma.load("notifications")  # tomorrow, in another process, with the same next decision
print(agent.decide({"device": "phone", "town": "Ulm", "days_since_visit": 3.0}, k=3))

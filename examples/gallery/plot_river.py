"""
From River: one event at a time
===============================

Events come as dicts, one by one. ``score_one`` says how usual an event is, ``learn_one``
learns it. The score is a log-density, so low is odd. The model never keeps the events.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw

# %%
# A stream of payments
# --------------------
# Two kinds of customers pay by day and by night. One event in four hundred is a large
# payment at an unusual hour.

rng = np.random.default_rng(1)


def events(number):
    for _ in range(number):
        if rng.random() < 1 / 400:
            yield {"hour": rng.uniform(2.0, 6.0), "log_amount": rng.normal(7.5, 0.4)}, True
        elif rng.random() < 0.6:
            yield {"hour": rng.normal(12.5, 2.0), "log_amount": rng.normal(3.0, 0.6)}, False
        else:
            yield {"hour": rng.normal(19.0, 1.2), "log_amount": rng.normal(4.5, 0.5)}, False


# %%
# Score first, then learn
# -----------------------
# This order makes the score honest: the model has not seen the event. The first two
# thousand events only teach.

model = hw.GaussianMixture(2, warm_up=500, random_state=0)
scores, planted, points = [], [], []
for number, (event, is_odd) in enumerate(events(12_000)):
    if number >= 2_000:
        scores.append(model.score_one(event))
        planted.append(is_odd)
        points.append((event["hour"], event["log_amount"]))
    model.learn_one(event)

scores, planted, points = np.array(scores), np.array(planted), np.array(points)

# %%
# Which events are odd
# --------------------
# The alarm takes the lowest half percent of the scores. What it finds beside the planted
# payments are the rarest of the usual ones.

threshold = np.quantile(scores, 0.005)
alarms = scores < threshold
print(f"{planted.sum()} odd payments came; {alarms.sum()} alarms were raised")
print(f"{(alarms & planted).sum()} of the odd payments are among the alarms")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(
    np.flatnonzero(~planted),
    scores[~planted],
    ".",
    color="0.7",
    markersize=2,
    label="usual payments",
)
left.plot(
    np.flatnonzero(planted),
    scores[planted],
    "o",
    color="#D55E00",
    markersize=5,
    label="planted odd payments",
)
left.axhline(threshold, color="black", linewidth=1, linestyle="--", label="alarm below")
left.set_xlabel("events after the first 2,000")
left.set_ylabel("score before learning, nats")
left.set_ylim(-55.0, 0.0)
left.legend(loc="lower left", fontsize="small")
right.plot(*points[~planted].T, ".", color="0.7", markersize=2)
right.plot(*points[planted].T, "o", color="#D55E00", markersize=5)
right.plot(
    *points[alarms].T,
    "o",
    markerfacecolor="none",
    markeredgecolor="black",
    markersize=10,
    label="alarm",
)
right.set_xlabel("hour of the day")
right.set_ylabel("logarithm of the amount")
right.legend(loc="upper right", fontsize="small")
plt.show()

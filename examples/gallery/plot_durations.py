"""
Durations: states that have a usual length
==========================================

A boiler rests for about forty minutes and burns for a quarter of an hour. To a hidden
Markov model a stay is as likely to end in its first minute as in any other.
:class:`headwater.SemiMarkov` learns how long each state lasts, and so knows when the next
one is due.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw

# %%
# A week of minutes
# -----------------
# The gas that a boiler burns, by a meter with noise almost as large as the signal.

rng = np.random.default_rng(5)


def draw_stays(cycles):
    return np.column_stack([rng.poisson(40, cycles), 8 + rng.poisson(7, cycles)])


stays = draw_stays(200)
burns = np.repeat(np.arange(400) % 2, stays.ravel())[:10_000]
gas = (burns + rng.normal(0.0, 0.8, size=10_000))[:, None]
week, sunday = gas[:8500], gas[8500:]

# %%
# Two models of the same rows
# ---------------------------
# Both have two states. Scores are those of the last day, which neither has learned.

plain = hw.GaussianHMM(2, n_iter=50, random_state=0).fit(week)
lasting = hw.SemiMarkov(2, max_duration=80, n_iter=50, random_state=0).fit(week)
models = {"GaussianHMM": plain, "SemiMarkov": lasting}
for name, model in models.items():
    order = np.argsort(model.means_.ravel())
    right = np.mean(np.argsort(order)[model.predict(sunday)] == burns[8500:])
    lengths = model.expected_durations_[order].round()
    print(f"{name}: {model.score(sunday) / 1500:.3f} nats a minute,")
    print(f"  right in {right:.1%} of the minutes; rests and burns last {lengths} minutes")

# %%
# When is the next burn due?
# --------------------------
# Left: the laws of the durations, and the stays that were drawn (grey). Right: a rest has
# lasted for 30 minutes. To the hidden Markov model that says nothing; the other one expects
# a burn in ten minutes or so, and the rest that follows it. Burns vary less than any
# negative binomial law does; a table of probabilities (``duration="categorical"``) has no
# such limit, and needs more stays.

ends = stays.sum(axis=1).cumsum()
cycle = next(k for k in range(160, 200) if stays[k, 0] > 40)
past = gas[: ends[cycle - 1] + 30]
ahead, length = np.arange(1, 81), np.arange(1, 81)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for state, color in enumerate(("0.6", "0.8")):
    left.hist(stays[:, state], np.arange(0.5, 81, 2), density=True, color=color)
for (name, model), color in zip(models.items(), ("#E69F00", "#0072B2"), strict=True):
    chance = model.forecast(80, past).state_proba[:, np.argmax(model.means_)]
    right.plot(ahead, chance, color=color, label=name)
    for state in (0, 1):
        stay = plain.transmat_[state, state]
        law = (
            (1 - stay) * stay ** (length - 1) if model is plain else model.durations_[state]
        )
        left.plot(length, law, color=color, label=None if state else name)

drawn = draw_stays(40_000).reshape(-1, 4).cumsum(axis=1)  # two cycles, from many rests
drawn = drawn[drawn[:, 0] > 30] - 30
truth = [np.mean((drawn < minute).sum(axis=1) % 2) for minute in ahead]
right.plot(ahead, truth, ":", color="black", label="truth")
left.text(19, 0.125, "burns", color="0.3")
left.text(36, 0.085, "rests", color="0.3")
left.set_xlabel("minutes that a stay lasts")
left.set_ylabel("probability")
right.set_xlabel("minutes from now")
right.set_ylabel("probability that it burns")
right.set_ylim(0, 1)
left.legend()
right.legend()
plt.show()

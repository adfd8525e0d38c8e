"""
Regimes: calm and stormy weeks of a market
==========================================

Returns of a market come in regimes: long calm stretches, short wild ones. A hidden Markov
model learns them from the returns alone. As each day ends it says which regime the market
is in, with what it knew that day.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw

# %%
# Twenty years of daily returns
# -----------------------------
# Three regimes, in percent a day: calm and rising, nervous, and falling in large steps.

rng = np.random.default_rng(11)
drift, volatility = np.array([0.07, 0.0, -0.25]), np.array([0.6, 1.3, 2.8])
passages = np.array([[0.985, 0.014, 0.001], [0.02, 0.97, 0.01], [0.005, 0.035, 0.96]])
regime = np.zeros(5000, dtype=int)
for day in range(1, 5000):
    regime[day] = rng.choice(3, p=passages[regime[day - 1]])
returns = drift[regime] + volatility[regime] * rng.normal(size=5000)

# %%
# The first ten years teach, the others are followed
# --------------------------------------------------
# ``fit`` makes several passes over the early days. Then ``filter`` uses the days up to each
# day and no later one, and ``update`` learns the day, so that the model goes on learning.

model = hw.GaussianHMM(3, random_state=0).fit(returns[:2500, None])
now = np.empty((2500, 3))
for day in range(2500):
    row = returns[2500 + day : 2501 + day, None]
    now[day] = model.filter(row)[0]
    model.update(row)

order = np.argsort(model.covars_.ravel())  # the calmest first
now = now[:, order]
print("volatility found, percent a day:", np.sqrt(model.covars_.ravel()[order]).round(2))
stays = np.diagonal(model.transmat_)[order]
print("days that a regime lasts:       ", (1.0 / (1.0 - stays)).round())
right = np.mean(now.argmax(axis=1) == regime[2500:])
print(f"the likeliest regime was the true one on {right:.0%} of the days")

# %%
# What a risk desk would look at
# ------------------------------
# The forecast of tomorrow's volatility mixes the regimes by their probabilities. It rises
# within days when the market turns.

chance = now @ model.transmat_[np.ix_(order, order)]
forecast = np.sqrt(chance @ model.covars_.ravel()[order])

colors = ["#56B4E9", "#E69F00", "#D55E00"]
figure, (top, middle, bottom) = plt.subplots(
    3, 1, figsize=(10, 6), sharex=True, height_ratios=(2, 1, 1.4), layout="constrained"
)
price = 100.0 * np.exp(np.cumsum(returns[2500:]) / 100.0)
for k, name in enumerate(["calm", "nervous", "falling"]):
    days = np.flatnonzero(now.argmax(axis=1) == k)
    top.scatter(days, price[days], s=5, color=colors[k], label=name)
top.set_ylabel("price")
top.set_title("a price, coloured by the likeliest regime of the day")
top.legend(ncols=3, loc="upper left", fontsize="small", markerscale=3)
middle.stackplot(range(2500), now.T, colors=colors)
middle.set_ylabel("probability")
middle.set_ylim(0, 1)
bottom.plot(np.abs(returns[2500:]), color="0.8", linewidth=0.6, label="size of the return")
bottom.plot(
    np.arange(1, 2501), forecast, color="#0072B2", label="volatility, forecast a day ahead"
)
bottom.plot(
    volatility[regime[2500:]], color="black", linewidth=0.8, linestyle=":", label="truth"
)
bottom.set_ylabel("percent a day")
bottom.set_ylim(0, 7)
bottom.set_xlim(0, 2500)
bottom.set_xlabel("day")
bottom.legend(ncols=3, fontsize="small", loc="upper left")
plt.show()

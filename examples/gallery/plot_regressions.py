"""
Regressions: one target, several laws
=====================================

The power that a plant uses depends on the temperature, but in summer it cools and in winter
it heats. One line fits neither. :class:`headwater.RegressionMixture` learns several lines,
and which rows belong to which.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import headwater as hw
from headwater import plotting

# %%
# Rows of three kinds
# -------------------

rng = np.random.default_rng(12)
temperature = rng.uniform(-10.0, 35.0, size=12_000)
power = np.where(
    temperature < 15.0,
    40.0 - 1.6 * temperature + 2.0 * rng.normal(size=12_000),
    -20.0 + 2.4 * temperature + 2.0 * rng.normal(size=12_000),
)
idle = rng.random(12_000) < 0.15
power[idle] = 8.0 + 1.0 * rng.normal(size=idle.sum())
X, held_out = temperature[:, None], slice(10_000, None)

# %%
# Learn them in chunks
# --------------------
# ``gating="input"``: which law holds may depend on the temperature.

model = hw.RegressionMixture(3, gating="input", random_state=0)
for start in range(0, 10_000, 1000):
    model.partial_fit(X[start : start + 1000], power[start : start + 1000])
line = LinearRegression().fit(X[:10_000], power[:10_000])

print("slopes:    ", model.coef_.ravel().round(2))
print("intercepts:", model.intercept_.ravel().round(1))
test = X[held_out], power[held_out]
print(f"R2 of the mixture {model.score(*test):.2f}, of one line {line.score(*test):.2f}")

# %%
# Which law a row follows
# -----------------------
# ``predict_components(X, y)`` takes the target into account. The idle hours stand out,
# though they happen at any temperature.

found = model.predict_components(X[held_out], power[held_out])
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), sharey=True, layout="constrained"
)
left.plot(temperature[held_out], power[held_out], ".", color="0.75", markersize=3)
grid = np.linspace(-10.0, 35.0, 200)[:, None]
left.plot(grid, line.predict(grid), color="black", label="one line")
left.plot(
    grid, model.predict(grid), color="#D55E00", linewidth=2, label="mean of the mixture"
)
left.set_title("what is expected at each temperature")
left.legend()
for k in range(3):
    right.plot(
        temperature[held_out][found == k],
        power[held_out][found == k],
        ".",
        markersize=3,
        color=plotting.PALETTE[k],
        alpha=0.4,
    )
plotting.regressions(model, X[held_out], ax=right)
right.set_ylabel("")
right.set_title("three laws, and the rows of each")
for ax in (left, right):
    ax.set_xlabel("temperature")
    ax.set_ylim(0, 75)
left.set_ylabel("power")
plt.show()

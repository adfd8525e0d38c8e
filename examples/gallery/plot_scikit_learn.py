"""
From scikit-learn: a mixture that learns chunk by chunk
=======================================================

You fit :class:`sklearn.mixture.GaussianMixture` again and again, because it has no
``partial_fit``. Change the import and the rest stays: parameters, attributes, methods and
shapes. What is new is ``partial_fit``, which reads each row once and forgets it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture

import headwater as hw
from headwater import plotting

# %%
# Rows for both of them
# ---------------------
# Six elongated groups in two columns, a hundred thousand rows. Ten thousand more rows are
# held out.

rng = np.random.default_rng(3)
centres = np.array(
    [[0.0, 0.0], [4.0, 1.0], [1.0, 4.5], [6.0, 5.0], [-3.0, 3.0], [3.0, -3.0]]
)
shapes = rng.normal(scale=0.6, size=(6, 2, 2)) + 0.4 * np.eye(2)


def draw(number):
    group = rng.integers(6, size=number)
    return centres[group] + np.einsum(
        "nij,nj->ni", shapes[group], rng.normal(size=(number, 2))
    )


rows, held_out = draw(100_000), draw(10_000)

# %%
# scikit-learn, all rows at once
# ------------------------------

batch = GaussianMixture(6, random_state=0).fit(rows)

# %%
# headwater, a thousand rows at a time
# ------------------------------------
# The loop holds one chunk in memory. ``score`` may be asked at any time.

model = hw.GaussianMixture(6, random_state=0)
seen, scores = [], []
for chunk in np.array_split(rows, 100):
    model.partial_fit(chunk)
    seen.append(model.n_samples_seen_)
    scores.append(model.score(held_out))

print("held-out score, nats per row")
print(f"scikit-learn: {batch.score(held_out):.4f}, after {batch.n_iter_} passes")
print(f"headwater:    {scores[-1]:.4f}, after one pass")

# %%
# A fitted model shows what it has learned.

model

# %%
# Components and scores
# ---------------------
# The ellipses hold one and two standard deviations. Dashed lines are those of scikit-learn.
# The curve on the right rises to the dashed line of scikit-learn, which reads all rows
# again in each of its passes.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plotting.ellipses(model, held_out, ax=left)
plotting.ellipses(batch, ax=left, color="black", filled=False)
left.set_title("the same six components")
right.plot(seen, scores, label="headwater, one pass")
right.axhline(
    batch.score(held_out),
    color="black",
    linestyle="--",
    label=f"scikit-learn, {batch.n_iter_} passes",
)
right.set_xlabel("rows learned")
right.set_ylabel("held-out score, nats per row")
right.set_title("quality while the rows come in")
right.legend()
plt.show()

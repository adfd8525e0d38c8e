"""
Embeddings: clusters of directions
==================================

Embeddings are compared by the cosine of their angle, so their lengths should not count.
Here they are made up: sixty columns, eight topics of very different widths, and lengths at
random. A mixture of directions finds topics that k-means mixes up.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

import headwater as hw

rng = np.random.default_rng(3)
topics = rng.normal(size=(8, 60))
widths = np.geomspace(0.5, 3.0, 8)
kinds = rng.choice(8, p=np.arange(8, 0, -1) / 36, size=20_000)
X = topics[kinds] + widths[kinds, None] * rng.normal(size=(20_000, 60))
X *= rng.uniform(0.2, 5.0, size=(20_000, 1))

# %%
# One pass
# --------
# Chunks come in and are forgotten. Rows are divided by their lengths on the way.

model = hw.VonMisesFisherMixture(8, random_state=0)
for chunk in np.array_split(X, 20):
    model.partial_fit(chunk)
means = MiniBatchKMeans(8, random_state=0).fit(normalize(X))
print(f"directions: {adjusted_rand_score(kinds, model.predict(X)):.3f}")
print(f"k-means:    {adjusted_rand_score(kinds, means.labels_):.3f}")

# %%
# Narrow and wide
# ---------------
# Each component has a width of its own: left, the concentration that was learned against
# the noise of its topic. Right, cosines of rows with the mean direction of their component.

found = np.array(
    [np.bincount(kinds[model.predict(X) == k], minlength=8).argmax() for k in range(8)]
)
unit = normalize(X)
cosines = np.einsum("nd,nd->n", unit, model.mean_directions_[model.predict(X)])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.loglog(widths[found], model.concentrations_, "o", color="#0072B2")
left.set_xlabel("noise of the topic")
left.set_ylabel("concentration that was learned")
order = np.argsort(model.concentrations_)
right.boxplot([cosines[model.predict(X) == k] for k in order], showfliers=False, widths=0.7)
right.set_xlabel("component, by concentration")
right.set_ylabel("cosine with the mean direction")
plt.show()

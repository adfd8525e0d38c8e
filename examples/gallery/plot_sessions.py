"""
Sessions: kinds of visitors, by the order of their clicks
=========================================================

A session is a sequence of pages. :class:`headwater.MarkovMixture` finds kinds of visitors:
each kind has pages that it starts on, and habits of where to go next. Sessions may have any
length.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw
from headwater import plotting

# %%
# Sessions of a shop
# ------------------
# Three kinds of visitors: those who compare products, those who know what they want, and
# those who look for help.

PAGES = ["home", "search", "product", "cart", "pay", "help"]
FROM = {  # kind of visitor: from each page, ten visits and where they go
    "comparing": ["064000", "028000", "136000", "108100", "505000", "550000"],
    "buying": ["082000", "019000", "011800", "001180", "800002", "500500"],
    "asking for help": ["011008", "130006", "202006", "000226", "200026", "320005"],
}
HABITS = np.array([[[int(n) for n in row] for row in rows] for rows in FROM.values()]) / 10
SHARES = [0.5, 0.3, 0.2]
rng = np.random.default_rng(3)


def session():
    kind, page = rng.choice(3, p=SHARES), 0
    pages = [page]
    for _ in range(rng.geometric(0.12)):
        page = rng.choice(6, p=HABITS[kind, page])
        pages.append(page)
    return pages, kind


drawn = [session() for _ in range(4000)]
sessions, kinds = [pages for pages, _ in drawn], np.array([kind for _, kind in drawn])
print(" > ".join(PAGES[page] for page in sessions[0]))

# %%
# Learn them as they end
# ----------------------

model = hw.MarkovMixture(3, n_symbols=len(PAGES), random_state=0)
for start in range(0, 4000, 500):
    model.partial_fit(sessions[start : start + 500])

print(model)

# %%
# Which component is which kind? The data are ours, so we can count.

found = model.predict(sessions)
table = np.array(
    [[np.mean(kinds[found == k] == kind) for kind in range(3)] for k in range(3)]
)
print("shares of the kinds that were found:", model.weights_.round(2))
print("each row a component, each column a true kind:\n", table.round(2))

# %%
# Habits, and how sure the model is
# ---------------------------------
# A row of a matrix says where visitors go from that page. Visitors who compare never come
# to the cart: such a row stays even, as the prior has it. A short session fits several
# kinds, and the model says so: it is as sure as it is right.

figure, axes = plt.subplots(
    1, 4, figsize=(13, 4), width_ratios=(1, 1, 1, 1.2), layout="constrained"
)
for place, ax in enumerate(axes[:3]):
    k = int(table[:, place].argmax())
    plotting.transitions(model, k, ax)
    ax.set_xticks(range(6), PAGES, rotation=90)
    ax.set_yticks(range(6), PAGES)
    ax.set_xlabel(f"{list(FROM)[place]}: {model.weights_[k]:.0%} of the sessions")
lengths = np.array([len(pages) for pages in sessions])
sure = model.predict_proba(sessions).max(axis=1)
right = found == table.argmax(axis=0)[kinds]
bins = np.array([2, 3, 4, 5, 6, 8, 10, 14, 20, 30])
middle = [
    np.median(lengths[(lengths >= low) & (lengths < high)]) for low, high in pairwise(bins)
]
for values, label in ((sure, "how sure the model is"), (right, "how often it is right")):
    parts = [
        values[(lengths >= low) & (lengths < high)].mean() for low, high in pairwise(bins)
    ]
    axes[3].plot(middle, parts, "o-", label=label)
axes[3].set_xlabel("pages in the session")
axes[3].set_ylim(0.4, 1.02)
axes[3].set_title("kind of a visitor", fontsize="medium")
axes[3].legend()
plt.show()

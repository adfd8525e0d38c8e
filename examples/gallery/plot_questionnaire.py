"""
Answers of a questionnaire: latent classes with names
=====================================================

People who answer a questionnaire often form a few kinds, each with its own usual answers.
:class:`headwater.MixedMixture` finds them (latent class analysis), with what people spend
beside their answers. The classes get names, and keep them while more answers come in.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import headwater as hw

# %%
# Answers of two waves
# --------------------
# Three kinds of people; in the second wave a fourth one appears. Some left questions out.

rng = np.random.default_rng(4)
SCALE = np.array(["never", "sometimes", "often"])
HABITS = np.array(  # probability of each answer, by kind and question
    [
        [[0.8, 0.15, 0.05], [0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]],
        [[0.1, 0.3, 0.6], [0.2, 0.3, 0.5], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]],
        [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]],
        [[0.05, 0.05, 0.9], [0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.05, 0.05, 0.9]],
    ]
)
QUESTIONS = ["reads news", "cooks", "travels", "watches series"]


def ask(people, shares):
    kind = rng.choice(len(shares), size=people, p=shares)
    drawn = (rng.random((people, len(QUESTIONS), 1)) > HABITS[kind].cumsum(axis=2)).sum(
        axis=2
    )
    answers = pd.DataFrame(SCALE[np.minimum(drawn, 2)], columns=QUESTIONS).mask(
        rng.random((people, len(QUESTIONS))) < 0.05
    )
    spends = np.exp(rng.normal(np.array([2.0, 4.0, 3.0, 4.5])[kind], 0.5))
    answers["spends"] = np.where(
        rng.random(people) < np.array([0.6, 0.1, 0.3, 0.1])[kind], 0.0, spends.round(2)
    )
    return answers


first, second = ask(6000, [0.5, 0.3, 0.2]), ask(6000, [0.35, 0.25, 0.2, 0.2])
print(first.head())

# %%
# Classes, and their names
# ------------------------
# What people spend is positive, skewed, and often nothing at all.

model = hw.MixedMixture(
    "auto", columns={"spends": "zero-inflated-lognormal"}, random_state=0
).partial_fit(first)
usual = model.probabilities_["travels"][
    :, list(model.categories_["travels"]).index("often")
]
cooks = model.probabilities_["cooks"][:, list(model.categories_["cooks"]).index("often")]
model.names_ = [
    "travellers" if one > 0.5 else "cooks" if other > 0.6 else "at home"
    for one, other in zip(usual, cooks, strict=True)
]
print(model.describe())

# %%
# A second wave
# -------------
# Names stay with their classes; a class that is new has a number until it is named.

model.partial_fit(second)
print(model.names_.tolist())

# %%
# What is usual in each class.

figure, axes = plt.subplots(
    1, len(QUESTIONS), figsize=(11, 2.6), sharey=True, layout="constrained"
)
for axis, question in zip(axes, QUESTIONS, strict=True):
    order = [list(model.categories_[question]).index(word) for word in SCALE]
    left = np.zeros(model.n_components_)
    for word, place in zip(SCALE, order, strict=True):
        share = model.probabilities_[question][:, place]
        axis.barh(model.names_, share, left=left, label=word)
        left += share
    axis.set_title(question)
axes[0].legend(loc="lower left", fontsize="small")

# %%
# An answer that was left out can be filled in, and an odd one explained.

print(model.impute(second[second.isna().any(axis=1)][:3], method="mode"))
print(model.explain(second[:200]))

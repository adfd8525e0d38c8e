"""
From gensim: topics of documents that keep coming
=================================================

gensim's ``LdaModel`` wants a dictionary before it learns. Here none is needed:
``vocabulary="open"`` takes new words at any time, and ``partial_fit`` takes texts as they
come. Their number need not be known.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw
from headwater import plotting

# %%
# A newspaper in which a new subject turns up
# -------------------------------------------
# Most texts mix two subjects. In the second half of the stream a storm comes, with words
# that are new.

SUBJECTS = {
    "politics": "parliament minister vote law party coalition budget speech election",
    "sport": "match goal coach league striker season referee stadium trophy final",
    "kitchen": "oven butter onion garlic recipe flour simmer pepper salt sauce",
    "storm": "storm flood wind rescue shelter warning river rain damage coast",
}
rng = np.random.default_rng(2)
words = {subject: np.array(text.split()) for subject, text in SUBJECTS.items()}


def article(subjects):
    shares = rng.dirichlet(np.full(len(subjects), 0.3))
    chosen = rng.choice(len(subjects), size=40, p=shares)
    return " ".join(rng.choice(words[subjects[subject]]) for subject in chosen)


early = [article(["politics", "sport", "kitchen"]) for _ in range(1500)]
late = [article(["politics", "sport", "kitchen", "storm"]) for _ in range(1500)]
print(early[0][:100], "...")

# %%
# Learn the texts in batches
# --------------------------

model = hw.LatentDirichletAllocation(4, vocabulary="open", warm_up=500, random_state=0)
sizes = []
for start in range(0, 3000, 100):
    model.partial_fit((early + late)[start : start + 100])
    sizes.append(len(model.feature_names_in_))
print(f"{sizes[0]} words after the first batch, {sizes[-1]} after the last")

# %%
# What the topics are about
# -------------------------
# ``transform`` gives the proportions of the topics in each text.

proportions = model.transform(early + late)
figure, axes = plt.subplots(
    1, 5, figsize=(12, 3.8), width_ratios=(1, 1, 1, 1, 2.2), layout="constrained"
)
for topic, ax in enumerate(axes[:4]):
    plotting.words(model, topic, ax, most=8)
    ax.set_title(f"topic {topic}", loc="left", fontsize="medium")
smooth = proportions.reshape(30, 100, 4).mean(axis=1)
axes[4].stackplot(
    np.arange(100, 3001, 100),
    smooth.T,
    colors=plotting.PALETTE,
    labels=[f"topic {k}" for k in range(4)],
)
axes[4].axvline(1500, color="black", linestyle="--", linewidth=1)
axes[4].set_title("share of each topic, by texts", fontsize="medium")
axes[4].set_xlabel("texts")
axes[4].set_xlim(100, 3000)
axes[4].set_ylim(0, 1)
plt.show()

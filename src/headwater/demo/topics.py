"""The story of topics: texts that keep coming, and a subject with words that nobody has used before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from headwater.core.statistics import Array
from headwater.demo.story import Draw, Story

if TYPE_CHECKING:
    from headwater.estimators.latent_dirichlet_allocation import LatentDirichletAllocation

SUBJECTS = {
    "politics": "parliament minister vote law party coalition budget speech election",
    "sport": "match goal coach league striker season referee stadium trophy final",
    "kitchen": "oven butter onion garlic recipe flour simmer pepper salt sauce",
    "storm": "storm flood wind rescue shelter warning river rain damage coast",
}
TEXT_WORDS = 40
BATCH_TEXTS = 50
SHOWN_WORDS = 6  # of a topic, in a sentence


def draw_texts(number: int, subjects: list[str], rng: np.random.Generator) -> list[str]:
    """Return texts, each of which mixes some of the subjects."""
    words = [np.array(SUBJECTS[subject].split()) for subject in subjects]
    texts = []
    for _ in range(number):
        chosen = rng.choice(len(words), size=TEXT_WORDS, p=rng.dirichlet(np.full(len(words), 0.3)))
        texts.append(" ".join(str(rng.choice(words[subject])) for subject in chosen))
    return texts


def tell(console: Console, rows: int, seed: int) -> Draw:
    """Learn texts as they come, and show which words go together and when a new subject turns up."""
    import headwater as hw

    rng, names = np.random.default_rng(seed), list(SUBJECTS)
    half = rows // 2
    texts = draw_texts(half, names[:-1], rng) + draw_texts(rows - half, names, rng)
    console.print(
        f"A newspaper of {rows:,} short texts about {', '.join(names[:-1])}. A storm comes halfway, with new words. No "
        f"dictionary is made first: words are taken as they come.\n\n  {texts[0][:70]} ...\n"
    )
    model = hw.LatentDirichletAllocation(len(names), vocabulary="open", warm_up=max(rows // 6, 100), random_state=seed)
    for start in range(0, rows, BATCH_TEXTS):
        model.partial_fit(texts[start : start + BATCH_TEXTS])
        if start + BATCH_TEXTS in (half // BATCH_TEXTS * BATCH_TEXTS, rows // BATCH_TEXTS * BATCH_TEXTS):
            known = len(model.feature_names_in_)
            console.print(f"After {start + BATCH_TEXTS:,} texts, {known} words are known.")
    console.print()
    shares = model.transform(texts)
    vocabulary = np.asarray(model.feature_names_in_)
    before, after = shares[:half].mean(axis=0), shares[half:].mean(axis=0)
    for topic, weights in enumerate(model.components_):
        words = ", ".join(vocabulary[np.argsort(-weights)[:SHOWN_WORDS]])
        console.print(f"Topic {topic}: {words}")
        console.print(f"         {before[topic]:.0%} of the first half, {after[topic]:.0%} of the second")
    risen = int(np.argmax(after - before))
    console.print(f"\nTopic {risen} rose most when the storm came.")
    return lambda path: draw_picture(path, model, shares)


def draw_picture(path: Path, model: LatentDirichletAllocation, shares: Array) -> None:
    """Draw the most probable words of each topic, and the share of each topic by texts."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from headwater import plotting

    topics = shares.shape[1]
    figure = Figure(figsize=(12.0, 3.8), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    *axes, last = figure.subplots(1, topics + 1, width_ratios=(*[1.0] * topics, 2.2))
    for topic, ax in enumerate(axes):
        plotting.words(model, topic, ax, most=8)
        ax.set_title(f"topic {topic}", loc="left", fontsize="medium")
        ax.locator_params(axis="x", nbins=3)
    batches = len(shares) // BATCH_TEXTS
    means = shares[: batches * BATCH_TEXTS].reshape(batches, BATCH_TEXTS, topics).mean(axis=1)
    last.stackplot(BATCH_TEXTS * np.arange(1, batches + 1), means.T, colors=plotting.PALETTE)
    last.axvline(len(shares) // 2, color="black", linestyle="--", linewidth=1)
    last.set(title="share of each topic, by texts", xlabel="texts", ylim=(0, 1), xlim=(BATCH_TEXTS, batches * BATCH_TEXTS))
    figure.savefig(path)


STORY = Story(rows=3000, quick_rows=1000, least_rows=400, unit="texts", tell=tell)

"""Paper 001's experiments made again: simulated online EM for latent factor models.

``python -m pages latent_factors`` measures them and writes docs/papers/latent_factors.md. Of the data sets newsgroups20, ap,
audio_vibe_ace and audio_piano_ragtime are read; without them those parts are left out, and so are peers that are not installed
(gensim, tomotopy).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from pages.page import Measures, Page
from papers import latent_factors_audio as audio
from papers import latent_factors_corpus as corpus
from papers import latent_factors_cost as cost
from papers import latent_factors_printed as printed
from papers import latent_factors_swimmer as swimmer
from papers import latent_factors_values as values
from papers import latent_factors_variance as variance
from papers.latent_factors_pictures import PICTURES
from papers.latent_factors_scale import Scale


def make_ratio(scale: Scale, directory: Path | None) -> Measures:
    for alpha in printed.ALPHAS:
        yield f"{alpha:g}", partial(printed.ratio_set, alpha, scale)


def make_variance(scale: Scale, directory: Path | None) -> Measures:
    for number in variance.NUMBERS:
        yield str(number or "exact"), partial(variance.variance_set, number, scale)


def make_swimmer(scale: Scale, directory: Path | None) -> Measures:
    yield "samples", partial(swimmer.samples_set, scale, directory)
    for components in swimmer.NUMBERS:
        yield f"{swimmer.METROPOLIS.name}/{components}", partial(swimmer.limbs_set, swimmer.METROPOLIS, components, scale)


def make_limbs(scale: Scale, directory: Path | None) -> Measures:
    """The learners that are faster than the paper's."""
    for components in swimmer.NUMBERS:
        for line in swimmer.LINES[1:]:
            yield f"{line.name}/{components}", partial(swimmer.limbs_set, line, components, scale)


def topic_lines(lines: Sequence[corpus.Line], scale: Scale, directory: Path | None) -> Measures:
    for name in corpus.CORPORA:
        path = corpus.corpus_path(directory, name)
        for line in lines if path else ():
            if find_spec(line.package):
                yield f"{name}/{line.name}", partial(corpus.corpus_set, line, path, scale)


def make_topics(scale: Scale, directory: Path | None) -> Measures:
    for name in corpus.CORPORA:
        path = corpus.corpus_path(directory, name)
        if path is not None:
            yield f"{name}/one topic", partial(corpus.one_topic, path, scale)
    yield from topic_lines([line for line in corpus.LINES if line is not corpus.BELIEFS], scale, directory)


def make_beliefs(scale: Scale, directory: Path | None) -> Measures:
    """What paper 000 leaves for later."""
    yield from topic_lines([corpus.BELIEFS], scale, directory)


def make_cost(scale: Scale, directory: Path | None) -> Measures:
    for topics in cost.NUMBERS:
        if topics <= scale.most_topics:
            yield str(topics), partial(cost.cost_set, topics, scale)


def make_audio(scale: Scale, directory: Path | None) -> Measures:
    for recording in audio.RECORDINGS:
        path = audio.audio_path(directory, recording)
        if path is not None:
            for name in audio.LEARNERS:
                yield f"{recording}/{name}", partial(audio.audio_set, name, path, scale)


def absent(scale: Scale, directory: Path | None) -> list[str]:
    """Data sets and peers that are not available."""
    sets = [title for name, title in corpus.CORPORA.items() if corpus.corpus_path(directory, name) is None]
    sets += [one.title for name, one in audio.RECORDINGS.items() if audio.audio_path(directory, name) is None]
    return sets + corpus.missing()


def compile_kernels() -> None:
    """So that no learner pays for the others."""
    tiny = Scale(seeds=1, images=30, burn_in=2, kept=2, tokens=400)
    rows = swimmer.images(tiny.images, 0)
    for line in swimmer.LINES:
        swimmer.learned(swimmer.at_scale(line, tiny), 3, 0, rows)
    hw.LatentDirichletAllocation(3, doc_topic_prior="learn", max_iter=1).fit(rows).topics_  # noqa: B018
    hw.completion_perplexity(rows[:3] + 1.0, rows)
    cost.cost_set(4, tiny)
    hw.ItakuraSaitoNMF(2, max_iter=1, random_state=0).fit(rows[:, :40] + 0.1).divergence(rows[:, :40] + 0.1)


PAGE = Page(
    name="latent_factors", room="papers", full=Scale(), minutes=20, seeds="0 to the number of seeds, copies or chains",
    quick=Scale(
        seeds=1, images=200, burn_in=20, kept=10, chains=20, draws=400, copies=100, steps=500, library_copies=4,
        library_rows=1024, documents=200, topics=5, passes=2, sweeps=20, most_topics=100, tokens=4000, frames=200,
    ),
    parts={
        "ratio": make_ratio, "variance": make_variance, "swimmer": make_swimmer, "limbs": make_limbs, "topics": make_topics,
        "beliefs": make_beliefs, "cost": make_cost, "audio": make_audio,
    },
    values=values.VALUES, names={"code": SimpleNamespace(swimmer=swimmer, corpus=corpus, audio=audio)}, pictures=PICTURES,
    absent=absent, prepare=compile_kernels, silent=(ConvergenceWarning,),
)  # fmt: skip

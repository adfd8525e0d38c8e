"""Paper 001's experiments made again: simulated online EM for latent factor models.

Run it with ``python -m papers.latent_factors``; it writes docs/papers/latent_factors.md, the pictures beside it and the figures
behind both (latent_factors.json). The directory of data sets, of which newsgroups20, ap and audio_vibe_ace are read, is named
by HEADWATER_DATA or ``--data``; without it those parts are skipped, and so are peers that are not installed (gensim,
tomotopy). A run that was broken off goes on where it ended; ``--only`` makes parts again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import headwater as hw
from pages.page import data_directory
from papers import latent_factors_audio as audio
from papers import latent_factors_corpus as corpus
from papers import latent_factors_cost as cost
from papers import latent_factors_printed as printed
from papers import latent_factors_swimmer as swimmer
from papers import latent_factors_variance as variance
from papers.latent_factors_claims import claims
from papers.latent_factors_page import render
from papers.latent_factors_results import FULL, NAME, PARTS, Figures, Results, Scale

OUT = Path(__file__).resolve().parents[1] / "docs" / "papers"
Measures = Iterator[tuple[str, Callable[[], Figures]]]  # the sets of a part, and what measures each


def make_ratio(scale: Scale, directory: Path | None) -> Measures:
    for alpha in printed.ALPHAS:
        yield f"{alpha:g}", partial(printed.ratio_set, alpha, scale)


def make_variance(scale: Scale, directory: Path | None) -> Measures:
    for number in variance.NUMBERS:
        yield str(number or "exact"), partial(variance.variance_set, number, scale)


def make_swimmer(scale: Scale, directory: Path | None) -> Measures:
    yield "samples", partial(swimmer.samples_set, scale, directory)
    for components in (16, 20):
        for line in swimmer.LINES:
            yield f"{line.name}/{components}", partial(swimmer.limbs_set, line, components, scale)


def make_topics(scale: Scale, directory: Path | None) -> Measures:
    for name in corpus.CORPORA:
        path = corpus.corpus_path(directory, name)
        if path is None:
            continue
        yield f"{name}/one topic", partial(corpus.one_topic, path, scale)
        for line in corpus.LINES:
            if find_spec(line.package):
                yield f"{name}/{line.name}", partial(corpus.corpus_set, line, path, scale)


def make_cost(scale: Scale, directory: Path | None) -> Measures:
    for topics in cost.NUMBERS:
        if topics <= scale.most_topics:
            yield str(topics), partial(cost.cost_set, topics, scale)


def make_audio(scale: Scale, directory: Path | None) -> Measures:
    path = audio.audio_path(directory)
    if path is not None:
        for name in audio.LEARNERS:
            yield name, partial(audio.audio_set, name, path, scale)


MAKERS = {
    "ratio": make_ratio, "variance": make_variance, "swimmer": make_swimmer, "topics": make_topics, "cost": make_cost,
    "audio": make_audio,
}  # fmt: skip


# The command


def absent(directory: Path | None) -> list[str]:
    """What is not at hand: data sets and peers."""
    sets = [title for name, title in corpus.CORPORA.items() if corpus.corpus_path(directory, name) is None]
    return sets + ([] if audio.audio_path(directory) else [audio.RECORDING]) + corpus.missing()


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


def run(results: Results, parts: Sequence[str], directory: Path | None) -> None:
    scale = Scale(**results.scale)  # type: ignore[arg-type]
    results.absent = absent(directory)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if parts:
            compile_kernels()
        for part in parts:
            kept = results.figures.setdefault(part, {})
            for name, measure in MAKERS[part](scale, directory):
                if name in kept:
                    continue
                began = time.perf_counter()
                kept[name] = measure()
                print(f"{part}: {name}, {time.perf_counter() - began:.1f} s", flush=True)
                results.write()
            results.pending.remove(part)
            results.write()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m papers.{NAME}", description=__doc__)
    parser.add_argument("--seeds", type=int, default=FULL.seeds, help="runs of each learner of limbs (default: %(default)s)")
    parser.add_argument("--images", type=int, default=FULL.images, help="swimmers in each run (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=FULL.documents, help="most documents of a corpus (default: all)")
    parser.add_argument("--only", choices=PARTS, action="append", help="make this part only (may be given again)")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a run that was broken off")
    parser.add_argument("--render", action="store_true", help="write page and pictures again from the figures there are")
    parser.add_argument("--data", type=Path, default=data_directory(), help="directory of data sets (default: HEADWATER_DATA)")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs/papers)")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    scale: Any = asdict(Scale.of(options.seeds, options.images, options.documents))
    results = Results.read(options.out / f"{NAME}.json", scale)
    if options.render:
        if not results.figures:
            parser.error(f"there are no figures to render in {options.out}")
    else:
        if results.scale != scale:
            parser.error(f"{options.out} holds the figures of a run of another size: give another --out")
        run(results, results.begin(options.only or (), options.fresh), options.data)  # type: ignore[arg-type]
    render(results, options.out)  # type: ignore[arg-type]
    print("\n".join(claims(results)))  # type: ignore[arg-type]
    print(f"\nWrote {NAME}.md, its pictures and its figures to {options.out} in {time.perf_counter() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

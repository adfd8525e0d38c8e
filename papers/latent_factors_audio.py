"""Itakura-Saito NMF, the second model of paper 001's section 2, on music: components, and what each holds over time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import headwater as hw
from headwater.core.statistics import Array
from pages.results import Figures
from papers.latent_factors_scale import Scale, coded

RECORDING = "Vibe Ace"
PATH = "audio_vibe_ace/audio_vibe_ace.npz"
COMPONENTS = 8
FLOOR = 1e-9  # of the mean power, added to all: what is so quiet is not music
HELD_OUT = 0.1
RANGE = 60.0  # decibels below the loudest that pictures show
HOP = 512


def audio_path(directory: Path | None) -> Path | None:
    path = directory / PATH if directory else None
    return path if path is not None and path.is_file() else None


@dataclass(frozen=True)
class Music:
    """Power spectra of all frames in their order, which of them are held out, and the sample rate."""

    frames: Array
    held_out: Array
    rate: float

    @classmethod
    def read(cls, path: Path, most: int) -> Music:
        with np.load(path) as stored:
            frames, rate = stored["power"][:most].astype(float), float(stored["sample_rate"])
        frames = frames / (FLOOR * frames.mean()) + 1.0  # scikit-learn's NMF takes what is far below 1 for nothing
        chosen = np.random.default_rng(np.random.SeedSequence(7)).permutation(len(frames))[: round(HELD_OUT * len(frames))]
        held_out = np.zeros(len(frames), dtype=bool)
        held_out[chosen] = True
        return cls(frames, held_out, rate)


def divergence(frames: Array, powers: Array) -> float:
    """Mean Itakura-Saito divergence of a bin."""
    ratio = frames / powers
    return float((ratio - np.log(ratio) - 1.0).mean())


class Peer:
    """scikit-learn's NMF, with the answers asked for here."""

    def __init__(self, components: int) -> None:
        from sklearn.decomposition import NMF

        settings: dict[str, Any] = {"beta_loss": "itakura-saito", "solver": "mu", "init": "random", "max_iter": 1000}
        self.model = NMF(components, random_state=0, **settings)

    def fit(self, frames: Array) -> Peer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(frames)
        return self

    def divergence(self, frames: Array) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return divergence(frames, np.maximum(self.model.transform(frames) @ self.model.components_, 1e-300))


def own(frames: Array, components: int, passes: bool) -> Any:
    model = hw.ItakuraSaitoNMF(components, random_state=0, n_threads=1)
    order = np.random.default_rng(np.random.SeedSequence(8)).permutation(len(frames))
    return model.fit(frames) if passes else model.partial_fit(frames[order])


STREAM, FIT, PEER, ALONE = "headwater, one pass", "headwater, fit", "scikit-learn, NMF", "headwater, one component"
LEARNERS: dict[str, Callable[[Array], Any]] = {
    ALONE: lambda frames: own(frames, 1, True),
    STREAM: lambda frames: own(frames, COMPONENTS, False),
    FIT: lambda frames: own(frames, COMPONENTS, True),
    PEER: lambda frames: Peer(COMPONENTS).fit(frames),
}


def decibels(powers: Array) -> str:
    """A picture of powers on a logarithmic scale."""
    scaled = 10.0 * np.log10(np.maximum(powers / powers.max(), 1e-300))
    return coded(np.maximum(scaled + RANGE, 0.0) / RANGE)


def audio_set(name: str, path: Path, scale: Scale) -> Figures:
    """Divergences of frames learned from and held out, seconds; and what the components are."""
    music = Music.read(path, scale.frames)
    train, test = music.frames[~music.held_out], music.frames[music.held_out]
    began = time.process_time()
    model = LEARNERS[name](train)
    spent = time.process_time() - began
    result: Figures = {
        "line": name, "floor": FLOOR, "components": 1 if name == ALONE else COMPONENTS, "frames": len(train),
        "held_out": len(test), "bins": train.shape[1], "seconds": spent, "divergence": model.divergence(test),
        "learned": model.divergence(train),
    }  # fmt: skip
    if name == FIT:
        result |= picture_of(model, music)
    return result


def picture_of(model: Any, music: Music) -> Figures:
    """Spectra from the deepest to the highest, the power of each over time, and its share of all."""
    spectra, parts = model.components_, model.separate(music.frames)
    hertz = np.arange(spectra.shape[1]) * music.rate / (2.0 * (spectra.shape[1] - 1))
    over_time = parts.sum(axis=2)
    centres = np.exp((spectra @ np.log(np.maximum(hertz, hertz[1]))) / spectra.sum(axis=1))
    order = np.argsort(centres)
    return {
        "hertz": float(hertz[-1]), "seconds_long": len(music.frames) * HOP / music.rate, "passes": int(model.n_iter_),
        "centres": centres[order].tolist(), "shares": (over_time.sum(axis=1) / over_time.sum())[order].tolist(),
        "spectra": [decibels(spectra[k]) for k in order],
        "over_time": [decibels(over_time[k]) for k in order],
        "busy": [float(np.mean(over_time[k] > 0.1 * over_time[k].max())) for k in order], "shape": model.weight_shape_,
    }  # fmt: skip

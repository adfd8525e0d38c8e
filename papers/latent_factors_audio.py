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

COMPONENTS = 8
FLOOR = 1e-9  # of the mean power, added to all: what is so quiet is not music
HELD_OUT = 0.1
RANGE = 60.0  # decibels below the loudest that pictures show
HOP = 512
SILENT = 1e-4  # share of all power below which a component counts as silent


@dataclass(frozen=True)
class Recording:
    """A recording: what it is called, what it is, and its file."""

    title: str
    meaning: str
    path: str


RECORDINGS = {
    "vibe_ace": Recording(
        "Vibe Ace", "Kevin MacLeod, CC BY 3.0; vibraphone, piano and bass", "audio_vibe_ace/audio_vibe_ace.npz"
    ),
    "ragtime": Recording(
        "Pistachio Ice Cream Ragtime", "Lena Orsa, CC BY-NC 3.0; piano", "audio_piano_ragtime/audio_piano_ragtime.npz"
    ),
}
CHOSEN_ON = "Vibe Ace"  # constants of the start of spectra


def audio_path(directory: Path | None, name: str) -> Path | None:
    path = directory / RECORDINGS[name].path if directory else None
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

    def __init__(self, components: int, seed: int) -> None:
        from sklearn.decomposition import NMF

        settings: dict[str, Any] = {"beta_loss": "itakura-saito", "solver": "mu", "init": "random", "max_iter": 1000}
        self.model = NMF(components, random_state=seed, **settings)

    def fit(self, frames: Array) -> Peer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(frames)
        return self

    def divergence(self, frames: Array) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return divergence(frames, np.maximum(self.model.transform(frames) @ self.model.components_, 1e-300))


def own(frames: Array, components: int, seed: int, passes: bool) -> Any:
    model = hw.ItakuraSaitoNMF(components, random_state=seed, n_threads=1)
    order = np.random.default_rng(np.random.SeedSequence((8, seed))).permutation(len(frames))
    return model.fit(frames) if passes else model.partial_fit(frames[order])


STREAM, FIT, PEER, ALONE = "headwater, one pass", "headwater, fit", "scikit-learn, NMF", "headwater, one component"
LEARNERS: dict[str, Callable[[Array, int], Any]] = {
    ALONE: lambda frames, seed: own(frames, 1, seed, True),
    STREAM: lambda frames, seed: own(frames, COMPONENTS, seed, False),
    FIT: lambda frames, seed: own(frames, COMPONENTS, seed, True),
    PEER: lambda frames, seed: Peer(COMPONENTS, seed).fit(frames),
}
SHOWN = f"vibe_ace/{FIT}"


def decibels(powers: Array) -> str:
    """A picture of powers on a logarithmic scale."""
    scaled = 10.0 * np.log10(np.maximum(powers / powers.max(), 1e-300))
    return coded(np.maximum(scaled + RANGE, 0.0) / RANGE)


def audio_set(name: str, path: Path, scale: Scale) -> Figures:
    """Divergences of frames learned from and held out, seconds; and what the components of the first seed are."""
    music = Music.read(path, scale.frames)
    train, test = music.frames[~music.held_out], music.frames[music.held_out]
    result: Figures = {
        "line": name, "floor": FLOOR, "components": 1 if name == ALONE else COMPONENTS, "frames": len(train),
        "held_out": len(test), "bins": train.shape[1], "seeds": scale.seeds,
    }  # fmt: skip
    kept: dict[str, list[float]] = {"seconds": [], "divergence": [], "learned": [], "silent": []}
    for seed in range(scale.seeds):
        began = time.process_time()
        model = LEARNERS[name](train, seed)
        kept["seconds"].append(time.process_time() - began)
        kept["divergence"].append(model.divergence(test))
        kept["learned"].append(model.divergence(train))
        if name in (STREAM, FIT):
            power = model.separate(train).sum(axis=(1, 2))
            kept["silent"].append(int(np.sum(power < SILENT * power.sum())))
        if name == FIT and seed == 0:
            result |= picture_of(model, music)
    return result | kept


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

"""
Audio: notes taken apart
========================

The power spectrum of a sound is the sum of the spectra of its notes, each with its own
loudness over time. :class:`headwater.ItakuraSaitoNMF` learns those spectra from a stream of
frames. ``separate`` then gives the power of each note.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import ShortTimeFFT
from scipy.signal.windows import hann

import headwater as hw
from headwater import plotting

# %%
# A melody with chords
# --------------------
# Three notes of a soft string, eight thousand samples a second, and a little noise. Some
# sound alone, some together.

rate, beat = 8000, 0.4
rng = np.random.default_rng(0)
pitches = np.array([261.6, 329.6, 392.0])  # C, E and G
chords = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]
tune = [chords[at] for at in rng.integers(len(chords), size=40)]


def string(pitch, seconds=1.2):
    time = np.arange(int(seconds * rate)) / rate
    tones = [
        np.sin(2 * np.pi * pitch * k * time + rng.uniform(0, 6)) / k**1.2
        for k in range(1, 9)
    ]
    swell = (
        np.sin(np.pi * np.minimum(time / 0.1, 1.0) / 2) ** 2
        * np.cos(np.pi * time / seconds / 2) ** 2
    )
    return np.exp(-2.0 * time) * swell * np.sum(tones, axis=0)


played = np.zeros((3, int((len(tune) * beat + 1.2) * rate)))
for place, chord in enumerate(tune):
    start = int(place * beat * rate)
    for note in chord:
        part = string(pitches[note]) * rng.uniform(0.5, 1.0)
        played[note, start : start + len(part)] += part
sound = played.sum(axis=0) + 0.01 * rng.normal(size=played.shape[1])

# %%
# Frames of power
# ---------------

transform = ShortTimeFFT(hann(1024, sym=False), hop=256, fs=rate)
frames = np.abs(transform.stft(sound)).T ** 2
print(f"{frames.shape[0]} frames of {frames.shape[1]} bins")

# %%
# Learn four spectra
# ------------------
# Three for the notes and one for the noise, which is the flattest of them.

model = hw.ItakuraSaitoNMF(4, random_state=0).fit(frames)
parts = model.separate(frames)  # components, frames, bins
loudness = parts.sum(axis=2)
flatness = np.exp(np.log(model.components_).mean(axis=1)) / model.components_.mean(axis=1)
notes = np.argsort(flatness)[:3]
loudest = transform.f[model.components_.argmax(axis=1)]
notes = notes[np.argsort(loudest[notes])]
print("strongest frequency of each note:", loudest[notes].round(), "Hz")

# %%
# The loudness of each spectrum follows the note that was played, in chords as well.

truth = np.stack(
    [(np.abs(transform.stft(part)) ** 2).sum(axis=0) for part in played], axis=1
)
seconds = transform.delta_t * np.arange(len(frames))
figure, (top, *below) = plt.subplots(
    4, 1, figsize=(10, 6.4), height_ratios=(2, 1, 1, 1), layout="constrained"
)
plotting.spectrogram(frames[:, :220], ax=top)
top.set_title("the sound")
for place, ax in enumerate(below):
    ax.fill_between(seconds, truth[:, place], color="0.8", label="played")
    ax.plot(seconds, loudness[notes[place]], color=plotting.PALETTE[place], label="found")
    ax.set_ylabel("CEG"[place], rotation=0, fontsize="large")
    ax.set_xlim(0, seconds[-1])
    ax.set_yticks([])
below[0].legend(ncols=2, fontsize="small")
below[-1].set_xlabel("seconds")
plt.show()

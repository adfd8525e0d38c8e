"""
Arrays of sensors: where a signal comes from
============================================

Eight antennas in a line receive one source. :class:`headwater.DirectionOfArrival` learns
its direction from snapshots, one complex number for each antenna. With a half-life it
follows a source that moves, and antennas may fail.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw
from headwater import plotting

# %%
# A source that passes by
# -----------------------
# It stands still at -30 degrees, moves to 40 degrees and stands still again. The noise is
# as loud as the signal. In the second half, two antennas are broken most of the time.

rng = np.random.default_rng(8)
number, sensors = 20_000, 8
angle = np.deg2rad(np.interp(np.arange(number), [6_000, 14_000], [-30.0, 40.0]))


def noise(*shape):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / np.sqrt(2.0)


phase = 2.0 * np.pi * 0.5 * np.sin(angle)  # between neighbours, half a wavelength apart
snapshots = noise(number, 1) * np.exp(1j * phase[:, None] * np.arange(sensors)) + noise(
    number, sensors
)
broken = rng.random((number, 2)) < 0.8
broken[: number // 2] = False
snapshots[:, [2, 5]] = np.where(broken, np.nan, snapshots[:, [2, 5]])

# %%
# Follow it
# ---------
# ``half_life=200``: a snapshot counts half after two hundred more have come. The standard
# error takes the source to stand still; while it moves, the estimate lags by some hundred
# snapshots.

model = hw.DirectionOfArrival(spacing=0.5, half_life=200, random_state=0)
track = []
for start in range(0, number, 250):
    model.partial_fit(snapshots[start : start + 250])
    track.append((start + 250, np.rad2deg(model.angle_), np.rad2deg(model.angle_std_)))
seen, found, sure = np.array(track).T
truth = np.rad2deg(angle[seen.astype(int) - 1])
still = (seen < 6_000) | (seen > 16_000)
print(
    f"mean error while it stands still: {np.abs(found - truth)[still].mean():.2f} degrees"
)
print(
    f"mean error while it moves:        {np.abs(found - truth)[~still].mean():.2f} degrees"
)

# %%
# Fill in what the broken antennas would have received
# ----------------------------------------------------

last = snapshots[-250:]
filled = model.impute(last)
print(f"{np.isnan(last).sum()} missing values before, {np.isnan(filled).sum()} after")

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.2), width_ratios=(1.5, 1), layout="constrained"
)
left.plot(
    np.arange(number),
    np.rad2deg(angle),
    color="black",
    linestyle="--",
    label="true direction",
)
left.plot(seen, found, color="#0072B2", label="learned")
left.fill_between(seen, found - 2 * sure, found + 2 * sure, color="#0072B2", alpha=0.25)
left.axvspan(number / 2, number, color="0.93", label="two antennas fail")
left.set_xlim(0, number)
left.set_xlabel("snapshots")
left.set_ylabel("degrees from broadside")
left.set_title("a source that moves for a while")
left.legend()
plotting.beam(model, ax=right)
right.set_title("power by angle, at the end")
plt.show()

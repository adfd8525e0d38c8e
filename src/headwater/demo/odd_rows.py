"""The story of odd rows: a pump whose values are usual one by one, and wrong together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from headwater.core.statistics import Array
from headwater.demo.story import Draw, Story

COLUMNS = ("speed", "flow", "pressure", "temperature", "vibration")
SPELL_ROWS = 100  # rows of one mode of the pump, one after the other
LEARNED_SHARE = 2 / 3  # of the rows; wrong rows are planted among the others
PLANTED = 12  # rows of each kind
RATE = 0.001  # of usual rows that score below the threshold
CHUNK_ROWS = 500


@dataclass(frozen=True)
class Telemetry:
    """Rows of a pump, the number of those to learn from, and which of the others are wrong."""

    rows: Array
    learned: int
    blocked: NDArray[np.int64]
    stuck: NDArray[np.int64]

    @classmethod
    def draw(cls, number: int, seed: int) -> Telemetry:
        """Draw rows of a pump with two modes; some late rows have a blocked pipe, or a temperature that sticks."""
        rng = np.random.default_rng(seed)
        spells = rng.permutation(np.arange(-(-number // SPELL_ROWS)) % 5 < 2)  # two spells in five are fast
        fast = np.repeat(spells, SPELL_ROWS)[:number]
        speed = np.where(fast, 2400.0, 1200.0) + 60.0 * rng.normal(size=number)
        rows = np.column_stack(
            [
                speed,
                0.02 * speed + 0.8 * rng.normal(size=number),
                1.0 + 1.2e-3 * speed + 0.08 * rng.normal(size=number),
                30.0 + 0.012 * speed + 0.9 * rng.normal(size=number),
                np.where(fast, 3.0, 1.2) + 0.25 * rng.normal(size=number),
            ]
        )
        learned = int(LEARNED_SHARE * number)
        late = np.arange(learned, number)
        blocked = rng.choice(late[fast[learned:]], PLANTED, replace=False)
        stuck = rng.choice(late[~fast[learned:]], PLANTED, replace=False)
        rows[blocked, 1] = 24.0 + rng.normal(size=PLANTED)  # a usual flow of the slow mode
        rows[stuck, 3] = 59.0 + 0.5 * rng.normal(size=PLANTED)  # a usual temperature of the fast mode
        return cls(rows, learned, blocked, stuck)


def surprises(mean: Array, precision: Array, row: Array) -> Array:
    """Return the distance of each value from its expectation given the other columns, in standard deviations."""
    return (precision @ (row - mean)) / np.sqrt(np.diagonal(precision))


def tell(console: Console, rows: int, seed: int) -> Draw:
    """Learn what is usual, find the odd rows, and say which value gives each away."""
    import headwater as hw

    data = Telemetry.draw(rows, seed)
    console.print(
        f"A pump reports {len(COLUMNS)} numbers each second: {', '.join(COLUMNS)}. It has a slow and a fast mode. Among "
        f"the last {rows - data.learned:,} of {rows:,} rows, {2 * PLANTED} are wrong: in {PLANTED} a pipe is blocked, in "
        f"{PLANTED} the temperature sticks. Each value alone is a usual one.\n"
    )
    monitor = hw.Monitor(hw.GaussianMixture(2, scale_columns=True, random_state=seed))
    for start in range(0, data.learned, CHUNK_ROWS):
        monitor.learn(data.rows[start : min(start + CHUNK_ROWS, data.learned)])
    model = monitor.model
    threshold = monitor.history.threshold(RATE)
    console.print(
        f"The first {data.learned:,} rows were learned, each once. One usual row in {1 / RATE:,.0f} scores below "
        f"{threshold:.2f}; a later row that does is odd."
    )
    late = data.rows[data.learned :]
    odd = data.learned + np.flatnonzero(model.score_samples(late) < threshold)
    planted = np.concatenate([data.blocked, data.stuck])
    found = int(np.isin(planted, odd).sum())
    console.print(f"{len(odd)} rows are odd. Among them are {found} of the {len(planted)} wrong ones.\n")

    component = model.predict(data.rows[planted])
    reasons = np.array(
        [surprises(model.means_[k], model.precisions_[k], row) for k, row in zip(component, data.rows[planted], strict=True)]
    )
    for name, part in (("blocked pipe", reasons[:PLANTED]), ("stuck temperature", reasons[PLANTED:])):
        console.print(f"A {name}, for example:")
        for at in np.argsort(-np.abs(part[0]))[:2]:
            side = "above" if part[0, at] > 0.0 else "below"
            console.print(
                f"  {COLUMNS[at]} is {abs(part[0, at]):.1f} standard deviations {side} the value that the others predict"
            )
    return lambda path: draw_picture(path, data, reasons)


def draw_picture(path: Path, data: Telemetry, reasons: Array) -> None:
    """Draw the late rows with the wrong ones, and how far each value of a wrong row is from what is expected."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    late = data.rows[data.learned :]
    left.plot(late[:, 0], late[:, 1], ".", color="0.75", markersize=2, label="rows")
    left.plot(*data.rows[data.blocked, :2].T, "o", color="#D55E00", label="blocked pipe")
    left.plot(*data.rows[data.stuck, :2].T, "s", color="#0072B2", markersize=5, label="stuck temperature")
    left.set(xlabel="speed, turns per minute", ylabel="flow, litres per second", title="Each value is usual, the pair is not")
    left.legend()
    shades = right.imshow(reasons, aspect="auto", cmap="RdBu_r", vmin=-15, vmax=15)
    right.set_xticks(range(len(COLUMNS)), COLUMNS, rotation=20)
    right.set_yticks([0.5 * PLANTED - 0.5, 1.5 * PLANTED - 0.5], ["blocked\npipe", "stuck\nsensor"])
    right.axhline(PLANTED - 0.5, color="black", linewidth=1)
    right.set_title("The column that makes a row odd")
    figure.colorbar(shades, ax=right, label="standard deviations from the prediction")
    figure.savefig(path)


STORY = Story(rows=30_000, quick_rows=6000, least_rows=3000, unit="rows", tell=tell)

"""The story of regimes: calm and wild weeks of a market, told apart as each day ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from headwater.core.statistics import Array
from headwater.demo.story import Draw, Story

NAMES = ("calm", "nervous", "falling")
DRIFT, VOLATILITY = np.array([0.07, 0.0, -0.25]), np.array([0.6, 1.3, 2.8])  # percent a day
PASSAGES = np.array([[0.985, 0.014, 0.001], [0.02, 0.97, 0.01], [0.005, 0.035, 0.96]])
COLORS = ("#56B4E9", "#E69F00", "#D55E00")


def draw_returns(days: int, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Return the returns of a market and its hidden regimes."""
    rng = np.random.default_rng(seed)
    regime = np.zeros(days, dtype=np.int64)
    for day in range(1, days):
        regime[day] = rng.choice(len(NAMES), p=PASSAGES[regime[day - 1]])
    return DRIFT[regime] + VOLATILITY[regime] * rng.normal(size=days), regime


def tell(console: Console, rows: int, seed: int) -> Draw:
    """Learn the first half of the days, follow the others day by day, and say what was known on each."""
    import headwater as hw

    returns, regime = draw_returns(rows, seed)
    half = rows // 2
    console.print(f"A market of {rows:,} days has three hidden regimes: {', '.join(NAMES)}. Only its returns are seen.")
    model = hw.GaussianHMM(len(NAMES), random_state=seed).fit(returns[:half, None])
    console.print(
        f"The first {half:,} days were learned together. The others come one by one: the model says which regime the market is "
        f"in, by what is known that day, and then learns the day.\n"
    )
    now = np.empty((rows - half, len(NAMES)))
    for day, value in enumerate(returns[half:]):
        row = np.array([[value]])
        now[day] = model.filter(row)[0]
        model.update(row)
    order = np.argsort(model.covars_.ravel())  # the calmest first
    now, variances = now[:, order], model.covars_.ravel()[order]
    passages = model.transmat_[np.ix_(order, order)]
    for k, name in enumerate(NAMES):
        lasts = 1.0 / max(1.0 - passages[k, k], 1e-9)
        console.print(
            f"{name:>8}: {np.sqrt(variances[k]):.2f} percent a day (truth {VOLATILITY[k]:.2f}), lasts {lasts:.0f} days "
            f"(truth {1.0 / (1.0 - PASSAGES[k, k]):.0f})"
        )
    right = np.mean(now.argmax(axis=1) == regime[half:])
    console.print(f"\nThe likeliest regime of the day was the true one on {right:.0%} of the days.")
    forecast = np.sqrt(now @ passages @ variances)
    console.print(f"Volatility forecast for tomorrow: {forecast[-1]:.2f} percent.")
    return lambda path: draw_picture(path, returns[half:], now, forecast, VOLATILITY[regime[half:]])


def draw_picture(path: Path, returns: Array, now: Array, forecast: Array, truth: Array) -> None:
    """Draw the price by regime, the probabilities of the regimes, and the forecast beside the truth."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 6.0), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2.0, 1.0, 1.4))
    days, price = np.arange(len(returns)), 100.0 * np.exp(np.cumsum(returns) / 100.0)
    for k, name in enumerate(NAMES):
        chosen = now.argmax(axis=1) == k
        top.scatter(days[chosen], price[chosen], s=5, color=COLORS[k], label=name)
    top.set(ylabel="price", title="A price, coloured by the likeliest regime of the day")
    top.legend(ncols=3, loc="upper left", fontsize="small", markerscale=3)
    middle.stackplot(days, now.T, colors=COLORS)
    middle.set(ylabel="probability", ylim=(0, 1))
    bottom.plot(days, np.abs(returns), color="0.8", linewidth=0.6, label="size of the return")
    bottom.plot(days + 1, forecast, color="#0072B2", label="volatility, forecast a day ahead")
    bottom.plot(days, truth, color="black", linewidth=0.8, linestyle=":", label="truth")
    bottom.set(ylabel="percent a day", xlabel="day", ylim=(0, 7), xlim=(0, len(returns)))
    bottom.legend(ncols=3, fontsize="small", loc="upper left")
    figure.savefig(path)


STORY = Story(rows=5000, quick_rows=1200, least_rows=600, unit="days", tell=tell)

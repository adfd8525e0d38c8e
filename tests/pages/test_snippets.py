"""Every Python block of the README and the pages runs as it stands, in a fresh folder, given what it leaves to the reader."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from every_model import stream_of

import headwater as hw
from headwater import datasets

HOME = Path(__file__).parents[2]
COLUMNS = ("price", "size", "wait")


def blocks_of(page):
    """The Python blocks of a page, by the line on which they begin."""
    text = (HOME / page).read_text(encoding="utf-8")
    return {text[: found.start()].count("\n") + 1: found[1] for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL)}


def block_with(page, words):
    """The block of a page that has these words."""
    (found,) = [block for block in blocks_of(page).values() if words in block]
    return found


def run(block, **given):
    """Run a block as a session of its own, and return what it made."""
    session = {"hw": hw, **given}
    exec(compile(block, "the block", "exec"), session)
    return session


def trades(rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(rows, 3)) + 8.0 * rng.integers(3, size=(rows, 1)), columns=COLUMNS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh folder with the files that blocks read."""
    monkeypatch.chdir(tmp_path)
    trades(600).to_parquet("trades.parquet")
    trades(60, 1).to_csv("new.csv", index=False)
    (tmp_path / "days").mkdir()
    for day in range(2):
        trades(3000, day).to_parquet(f"days/{day}.parquet")
    return tmp_path


def texts(number, seed):
    rng = np.random.default_rng(seed)
    words = np.array(["river", "water", "boat", "fish", "net", "bank", "market", "price", "trade", "fund", "bond", "yield"])
    return [" ".join(rng.choice(words[6 * (at % 2) :][:6], 12)) for at in range(number)]


def given_trades():
    start = hw.GaussianMixture(3, random_state=0, warm_up=100).partial_fit(hw.stream(trades(400)))
    monday, tuesday = (start.branch().partial_fit(hw.stream(trades(200, seed))) for seed in (2, 3))
    return {"new": trades(20, 4), "monday": monday, "tuesday": tuesday}


def given_counts():
    rng = np.random.default_rng(0)
    return {
        "chunks": [rng.poisson(1.0, size=(60, 15)) for _ in range(2)],
        "labels": np.repeat([-1, 3], 30),
        "sessions": [rng.integers(17, size=size).tolist() for size in rng.integers(2, 9, size=60)],
    }


def given_chain():
    chunks = [chunk.X for chunk in stream_of("chain", (120, 80))]
    return {"chunks": chunks, "rows": chunks[0][:50], "row": chunks[0][0], "X": chunks[1], "lengths": [50, 30]}


def given_line():
    (chunk,) = stream_of("regression", (200,))
    return {"X": chunk.X, "y": chunk.y}


def given_factors():
    (frames,) = stream_of("spectra", (120,))
    return {"documents": texts(120, 0), "later": texts(30, 1), "frames": frames.X}


def given_snapshots():
    (chunk,) = stream_of("arrival", (120,))
    snapshots = chunk.X.copy()
    snapshots[::3, 1] = np.nan
    return {"snapshots": snapshots}


README = {
    "GaussianMixture(8)": given_trades,
    "MultinomialMixture": given_counts,
    "GaussianHMM": given_chain,
    "RegressionMixture": given_line,
    "LatentDirichletAllocation": given_factors,
    "DirectionOfArrival": given_snapshots,
}


@pytest.mark.parametrize(
    "words", [pytest.param(words, marks=[pytest.mark.slow] * (given is given_trades)) for words, given in README.items()]
)  # that one draws a report
def test_a_block_of_the_readme_runs(folder, words):
    run(block_with("README.md", words), **README[words]())


def test_the_block_about_streams_runs(folder):
    for day in (0, 1):
        trades(300, day).assign(id=range(300)).to_parquet(f"days/{day}.parquet")
    (folder / "days").rename("trades")
    assert run(block_with("docs/guide/streams.md", "hw.stream"))["model"].n_samples_seen_ == 600


def test_the_block_about_model_files_runs(folder):
    hw.GaussianMixture(2, random_state=0, warm_up=100).partial_fit(trades(300)).save("trades.hw")
    assert run(block_with("docs/guide/model-files.md", "safe_open"))["means"].shape == (2, 3)


@pytest.mark.slow
def test_the_block_of_the_guide_runs(folder, capsys):
    model = hw.GaussianMixture(3, covariance_type="diag", random_state=0)
    for chunk in hw.stream(datasets.path("digits")):
        model.partial_fit(chunk)
    model.save("digits.hw")
    run(block_with("docs/guide/command-line.md", "digits.hw"))
    assert (folder / "digits.html").exists() and capsys.readouterr().out


def test_no_block_is_forgotten():
    known = {
        "README.md": [*README, "distributed.fit"],
        "docs/guide/streams.md": ["hw.stream"],
        "docs/guide/model-files.md": ["safe_open"],
    }
    known |= {"docs/guide/command-line.md": ["digits.hw"], "docs/guide/clusters.md": ["distributed.fit"]}
    for page, words in known.items():
        assert len(blocks_of(page)) == len(words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")  # few rows, and 32 components
def test_the_blocks_about_clusters_run(folder, capsys):
    from dask import array
    from distributed import Client, LocalCluster

    options = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}, "silence_logs": 50}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster) as client:
        run(block_with("README.md", "distributed.fit"), client=client)
        block = block_with("docs/guide/clusters.md", "distributed.fit")
        # The scheduler and the bucket of the page are nobody's: here is another of each.
        block = block.replace("tcp://boss:8786", cluster.scheduler_address).replace("s3://days", str(folder / "days"))
        rows = array.from_array(trades(3000).to_numpy(), chunks=(1000, 3))
        run(block, dask_array=rows)
    assert "parts by 2 workers" in capsys.readouterr().out

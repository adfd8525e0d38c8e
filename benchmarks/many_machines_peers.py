"""Other libraries on the same files: scikit-learn with all rows in memory, Spark MLlib in its own process, and dask-ml."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow.parquet import read_table
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, start_from
from benchmarks.density import mean_score, mixture_of
from benchmarks.many_machines_data import COMPONENTS, Rows
from benchmarks.passes import fit, per_pass
from benchmarks.timing import timed

SPARK = Path(__file__).with_name("many_machines_spark.py")
COPIES = 8  # of the rows and of arrays as large as they, that scikit-learn may have at a time
ASK_DASK_ML = (
    "import importlib.metadata, pkgutil, dask_ml, dask_ml.cluster as cluster;"
    "print(importlib.metadata.version('dask-ml'), importlib.metadata.version('dask'),"
    "any(module.name == 'mixture' for module in pkgutil.iter_modules(dask_ml.__path__)),"
    "*[name for name in dir(cluster) if name[0].isupper()])"
)


def in_memory(rows: Rows, most: int | None) -> Array:
    """Return the first rows: all of them, if scikit-learn has enough memory."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    width = rows.held_out.shape[1]
    least = min(rows.rows if most is None else most, rows.rows, free // (COPIES * 8 * width))
    parts, got = [], 0
    for path in rows.paths:
        if got < least:
            table = read_table(path)
            parts.append(np.column_stack([column.to_numpy() for column in table.columns])[: least - got])
            got += len(parts[-1])
    return np.concatenate(parts)


def sklearn_fit(rows: Rows, covariance_type: str, passes: int, most: int | None, threads: int) -> dict[str, Any]:
    """A pass of EM from the truth on, and a fit as it is by default but for the number of passes."""
    import sklearn
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    X = in_memory(rows, most)
    arguments = {"n_components": COMPONENTS, "tol": 0.0, "random_state": 0, **start_from(rows.truth, covariance_type)}
    model = GaussianMixture(COMPONENTS, covariance_type=covariance_type, max_iter=passes, random_state=0)
    with threadpool_limits(limits=threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        each = per_pass({"peer": partial(fit, GaussianMixture, arguments, X)}, 1, 2)["peer"].best
        seconds, model = timed(model.fit, X)
    return {
        "name": f"scikit-learn {sklearn.__version__}, in memory, {threads} thread{'s' if threads > 1 else ''}",
        "covariance": covariance_type, "seconds": seconds, "rows": len(X), "passes": int(model.n_iter_), "per_pass": each,
        "score": mean_score(mixture_of(model.weights_, model.means_, model.covariances_), rows.held_out),
    }  # fmt: skip


def spark_fits(rows: Rows, python: str, cores: int, passes: list[int]) -> Iterator[dict[str, Any]]:
    """Fits of Spark MLlib with these numbers of passes, in a process that is closed at the end."""
    command = [python, str(SPARK), str(rows.folder), str(COMPONENTS), str(cores), "0", *map(str, passes)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    before: dict[str, Any] | None = None
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            found = json.loads(line)
            mixture = mixture_of(found["weights"], found["means"], found["covariances"])
            entry = {
                "name": f"Spark {found['version']}, local[{cores}]", "covariance": "full", "seconds": found["seconds"],
                "rows": rows.rows, "passes": found["passes"], "per_pass": _difference(found, before),
                "score": mean_score(mixture, rows.held_out), "workers": cores,
            }  # fmt: skip
            before = found
            yield entry
        said = process.stderr.read()
    if process.returncode:
        raise RuntimeError(f"{python} could not run Spark: {said.strip()[-800:]}")


def _difference(found: dict[str, Any], before: dict[str, Any] | None) -> float | None:
    """Seconds a pass, from two fits that differ in the number of passes only."""
    if before is None or found["passes"] == before["passes"]:
        return None
    return float((found["seconds"] - before["seconds"]) / (found["passes"] - before["passes"]))


def dask_ml_says(python: str) -> str:
    """Whether dask-ml has an answer, found out in an interpreter that has it."""
    done = subprocess.run([python, "-W", "ignore", "-c", ASK_DASK_ML], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"dask-ml does not load in the interpreter given: {done.stderr.strip().splitlines()[-1]}"
    version, dask, mixture, *names = done.stdout.split()
    if mixture == "True":
        return f"dask-ml {version} (dask {dask}) has mixtures, which this benchmark does not know yet."
    from sklearn.mixture import GaussianMixture

    blocks = "" if hasattr(GaussianMixture, "partial_fit") else (
        ", and what it hands blocks of rows to must have `partial_fit`, which scikit-learn's mixture has not"
    )  # fmt: skip
    return f"dask-ml {version} (dask {dask}) has no answer: it clusters by {' and '.join(names)}, has no mixture{blocks}."

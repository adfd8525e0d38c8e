"""Spark MLlib's mixture on a folder of Parquet files. Runs in an interpreter that has pyspark and need not have headwater.

    PYTHON many_machines_spark.py FOLDER COMPONENTS CORES SEED ITERATIONS...

Prints a line of JSON for each number of iterations: seconds, what was found, and Spark's version. Every fit begins from the
files, with the same seed, so a longer one goes on where a shorter one stopped. The clock starts when the session is up and a
fit of one file has been made, so that the machine code is warm.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

MEMORY = "10g"  # of the one process that local[n] is


def session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("many machines")
        .config("spark.driver.memory", MEMORY)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def fitted(spark: Any, path: str, n_components: int, seed: int, iterations: int) -> Any:
    """One fit from the files on. Spark keeps the rows in memory between passes by itself."""
    from pyspark.ml.clustering import GaussianMixture
    from pyspark.ml.feature import VectorAssembler

    table = spark.read.parquet(path)
    rows = VectorAssembler(inputCols=table.columns, outputCol="features").transform(table).select("features")
    return GaussianMixture(k=n_components, seed=seed, maxIter=iterations).fit(rows)


def found(model: Any) -> dict[str, Any]:
    """Parameters as lists. The covariances of Spark are full, and there are no others."""
    gaussians = [(row["mean"].toArray().tolist(), row["cov"].toArray().tolist()) for row in model.gaussiansDF.collect()]
    return {
        "weights": list(model.weights),
        "means": [mean for mean, _ in gaussians],
        "covariances": [covariance for _, covariance in gaussians],
        "passes": model.summary.numIter,
    }


def main(folder: str, n_components: int, cores: int, seed: int, iterations: list[int]) -> None:
    import pyspark

    spark = session(cores)
    spark.sparkContext.setLogLevel("ERROR")
    paths = sorted(str(path) for path in Path(folder).glob("*.parquet"))
    fitted(spark, paths[0], n_components, seed, 3)
    for number in iterations:
        begin = perf_counter()
        model = fitted(spark, folder, n_components, seed, number)
        seconds = perf_counter() - begin
        print(json.dumps({"version": pyspark.__version__, "seconds": seconds, **found(model)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), [int(one) for one in sys.argv[5:]])

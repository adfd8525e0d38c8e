"""Digests of the states and answers of models after fixed streams. They show that a change of code changed no bit.

    python tests/fingerprints.py --record     writes tests/data/fingerprints.json
    python tests/fingerprints.py [words]      compares with it, and names what changed; only cases whose name has all the words

Bits depend on the processor and on the compilers of kernels and matrix products, so a table is valid for the machine and the
versions that it was recorded with. Numba orders what it compiles by hashes of names, and sums that may be reassociated end
up in another order: kernels are compiled under one hash seed, into a cache of their own.
Only `contents` depends on the layout of a state.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import every_model
import law_table
import llvmlite.binding
import numpy as np
from law_rows import rows_for
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.core.contents import folded_progress
from headwater.core.records import arrays_of
from headwater.core.state import Progress, WarmUp

TABLE = Path(__file__).parent / "data" / "fingerprints.json"
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn")
CUTS = (0.0, 0.22, 0.24, 0.375, 0.38, 0.72)  # where the rows of the law table are cut: in the warm-up, after it, and short ones

# Public answers, with rows and without.
METHODS = ("score_samples", "predict_proba", "predict", "transform", "predictive_score_samples", "impute", "score_steps")
ATTRIBUTES = (
    "weights_", "means_", "covariances_", "precisions_cholesky_", "probabilities_", "components_", "coef_", "intercept_",
    "noise_variance_", "startprob_", "transmat_", "covars_", "emissionprob_", "doc_topic_prior_", "weight_scale_", "angle_",
    "power_", "weight_concentration_", "mean_precision_", "degrees_of_freedom_", "n_samples_seen_", "lower_bound_", "n_iter_",
    "half_life_", "n_components_",
)  # fmt: skip


def environment():
    """Return what the bits depend on."""
    features = hashlib.blake2b(llvmlite.binding.get_host_cpu_features().flatten().encode(), digest_size=6).hexdigest()
    versions = " ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()} {features} {versions}"


def digest(*values):
    """Return a digest of all arrays and numbers in some values."""
    found = hashlib.blake2b(digest_size=4)
    for value in values:
        for array in arrays_of(value):
            found.update(f"{array.dtype.kind}{array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def contents(state):
    """Return the parts of a state, by names that do not depend on its layout; absent parts are None."""
    if isinstance(state, WarmUp):
        return {"progress": (Progress(),), "rows that wait": ((), state.buffer)}
    base, records, unfolded = state.base, state.records, state.unfolded
    pending = getattr(unfolded, "summary", None)
    return {
        "progress": (folded_progress(state),),
        "prior": (base.prior,),
        "base": (base.statistics, base.records.get("average"), base.progress),
        "statistics": (state.statistics,),
        "average": (records.get("average"),),
        "parameters": (state.parameters, records.get("fit_result")),
        "partial batch": pending and (pending.statistics, pending.rows, pending.size, pending.score),
        "rows that wait": (getattr(unfolded, "waiting", ()), None),
        "open sequences": (getattr(unfolded, "carry", None),),
        "reservoir": (records.get("reservoir"),),
        "refinement": (records.get("refinement"),),
        "drift": (records.get("drift"),),
        **{f"shard {number}": tuple(contents(shard).values()) for number, shard in enumerate(getattr(unfolded, "streams", ()))},
    }


def state_digests(model):
    """Return a digest of each thing that the state of a model holds."""
    return {
        name: digest(values)
        for name, values in contents(model._state).items()
        if any(value is not None for value in values or ())
    }


def answer_digests(model, given):
    """Return a digest of each public answer of a model, about rows or without any."""
    found = {}
    for name in METHODS:
        if name == "impute" and not isinstance(model, hw.DirectionOfArrival):
            continue  # of complete rows, which these are, a mixture gives back the rows
        if hasattr(model, name):
            found[name] = digest(np.asarray(getattr(model, name)(*_arguments(model, name, given))))
    for name in ATTRIBUTES:
        if hasattr(model, name):
            value = getattr(model, name)
            found[name] = digest(tuple(map(np.asarray, value)) if isinstance(value, list | tuple) else np.asarray(value))
    return found


def _arguments(model, name, given):
    if isinstance(model, hw.RegressionMixture) and name == "predict":
        return given[:1]
    return given


def _all_digests(moment, model, given):
    found = {**state_digests(model), **answer_digests(model, given)}
    return {f"{moment}: {name}": value for name, value in found.items()}


def _learn(model, chunks):
    for chunk in chunks:
        if model.algorithm in ("em", "vb"):
            model.fit(*chunk)
        else:
            model.partial_fit(*chunk)
    return model


def law_case(model):
    """Return digests of one row of the law table: after a stream in chunks, after `fit`, after `update`, and merged."""
    rows = rows_for(model).copy()
    target = isinstance(model, hw.RegressionMixture)
    whole = (rows[:, :-1], rows[:, -1]) if target else (rows,)
    ends = [*(int(cut * len(rows)) for cut in CUTS), len(rows)]
    chunks = [tuple(part[a:b] for part in whole) for a, b in pairwise(ends)]
    if model.algorithm in ("em", "vb"):
        return _all_digests("fit", clone(model).fit(*whole), whole)
    streamed = _learn(clone(model), chunks)
    found = _all_digests("stream", streamed, whole)
    fitted = clone(model).fit(*whole)
    found |= {f"fit: {name}": value for name, value in answer_digests(fitted, whole).items()}
    scored = clone(model)
    found["update"] = digest(np.concatenate([scored.update(*chunk) for chunk in chunks[:4]]))
    branches = [_learn(streamed.branch(), [chunk]) for chunk in chunks[-2:]]
    return found | _all_digests("merged", hw.merge(branches), whole)


def kind_case(kind):
    """Return digests of one kind of model with default settings: chunks, weights, and merged models."""
    chunks = every_model.stream_of(kind)
    model = every_model.learned(kind)
    found = state_digests(model)
    other = every_model.KINDS[kind][0]().set_params(random_state=1)
    for chunk in chunks[2:]:
        other.partial_fit(**chunk)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matched = hw.merge([model, other])
    return found | {f"matched: {name}": value for name, value in state_digests(matched).items()}


def race_case(model):
    """Return digests of a model that finds its number of components."""
    rows = rows_for(model).copy()
    found = clone(model).set_params(n_components="auto")
    for start in range(0, 400, 80):
        found.partial_fit(rows[start : start + 80])
    return {**state_digests(found), **answer_digests(found, (rows,))}


def cases():
    """Yield name, function and argument of every case."""
    for table in (
        "MODELS", "COUNT_MODELS", "TOPIC_MODELS", "REGRESSION_MODELS", "HEALING_MODELS", "SPECTRA_MODELS", "ARRIVAL_MODELS",
        "CHAIN_MODELS",
    ):  # fmt: skip
        for number, model in enumerate(getattr(law_table, table)):
            yield f"{table.lower()} {number:02} {re.sub(' at 0x[0-9a-f]+', '', ' '.join(repr(model).split()))}", law_case, model
    for kind in every_model.KINDS:
        yield f"kind {kind}", kind_case, kind
    for model in (law_table.TOPIC_MODELS[0], law_table.SPECTRA_MODELS[0]):
        yield f"race {type(model).__name__}", race_case, model


def compute(words=()):
    """Yield name and digests of each case whose name has all the words."""
    for name, function, argument in cases():
        if all(word in name for word in words):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                yield name, function(argument)


def run_with_fixed_hashes():
    """Start this program again with a fixed hash seed, so that compiled kernels are the same every time."""
    kernels = hashlib.blake2b(digest_size=6)
    for file in sorted(Path(hw.__file__).parent.joinpath("kernels").glob("*.py")):
        kernels.update(file.read_bytes())
    cache = Path(__file__).parents[1] / ".fingerprints" / kernels.hexdigest()
    environ = {**os.environ, "PYTHONHASHSEED": "0", "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, *sys.argv], env=environ, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write the table anew, or the cases of these words")
    parser.add_argument("words", nargs="*", help="only cases whose name has all of these")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        return run_with_fixed_hashes()
    if options.record:
        known = json.loads(TABLE.read_text())["cases"] if options.words else {}
        found = known | dict(compute(options.words))
        TABLE.parent.mkdir(exist_ok=True)
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one, separators=(',', ':'))}" for name, one in found.items())
        TABLE.write_text(f'{{"environment": {json.dumps(environment())}, "cases": {{\n{lines}\n}}}}\n')
        print(f"{len(found)} cases recorded")
        return 0
    recorded = json.loads(TABLE.read_text())
    if recorded["environment"] != environment():
        print(f"recorded on another machine or by other versions: {recorded['environment']}")
        return 2
    changed = 0
    for name, found in compute(options.words):
        before = recorded["cases"].get(name, {})
        different = sorted(key for key in before.keys() | found.keys() if before.get(key) != found.get(key))
        changed += bool(different)
        if different:
            print(f"{name}: {', '.join(different)}", flush=True)
    print(f"{changed} cases changed")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())

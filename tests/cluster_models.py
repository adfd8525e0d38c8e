"""Every model with data on a cluster: partitions for `headwater.distributed.fit`, and the same rows for `fit`."""

import random
import threading
import time
from functools import wraps

import dask.array
import dask.bag
import numpy as np
from dask.delayed import delayed
from every_model import KINDS, stream_of

import headwater as hw
from headwater.core.algorithms import ALGORITHMS
from headwater.estimators.model_file import to_bytes
from headwater.io import row_collection
from headwater.io.files import container

SIZES = (60, 50, 70, 40, 80, 60, 40, 50, 50)
SYMBOLS = np.array(["home", "shop", "pay"])
CHAINED = [kind for kind, (make, _) in KINDS.items() if make()._traits.chained]
PASSES = dict.fromkeys(CHAINED, "n_iter")  # the parameter that is called max_iter elsewhere


def sentences(chunk):
    """Return the sequences of a chunk as lines of text."""
    return [" ".join(SYMBOLS[one]) for one in np.split(chunk.X.astype(int), np.cumsum(chunk.lengths)[:-1])]


def array_of(parts):
    """Return a dask array of these partitions, which may be sparse."""
    shapes = [(part.shape[0], *part.shape[1:]) for part in parts]
    blocks = [
        dask.array.from_delayed(delayed(part, pure=True), shape, part.dtype) for part, shape in zip(parts, shapes, strict=True)
    ]
    return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)


def on_cluster(kind, sizes=SIZES, seed=0):
    """Return data for a kind of model as a Dask collection, a partition for each size, and companions of the rows."""
    chunks = stream_of(kind, sizes, seed)
    if kind == "markov":
        return dask.bag.from_delayed([delayed(sentences(chunk), pure=True) for chunk in chunks]), {}
    given = {} if chunks[0].y is None else {"y": array_of([chunk.y for chunk in chunks])}
    return array_of([chunk.X for chunk in chunks]), given


def at_hand(kind, sizes=SIZES, seed=0):
    """Return the same rows, for `fit`."""
    chunks = stream_of(kind, sizes, seed)
    if kind == "markov":
        lines = [line for chunk in chunks for line in sentences(chunk)]
        return dict(row_collection.collect_rows(hw.stream(iter(lines), format="sequences")))
    given = {"X": row_collection.stack_rows([chunk.X for chunk in chunks])}
    if chunks[0].y is not None:
        given["y"] = np.concatenate([chunk.y for chunk in chunks])
    if kind in CHAINED:
        given["lengths"] = np.array(sizes)
    return given


def words_of(kind):
    """Return the algorithms of a kind of model."""
    chunk, found = stream_of(kind, (60,))[0], []
    for word in ALGORITHMS:
        try:
            KINDS[kind][0]().set_params(algorithm=word)._taken(True, **chunk)
        except ValueError:
            continue
        found.append(word)
    return found


# Every kind with every algorithm it has; two of the kinds are others with a certain one.
TABLE = [
    (kind, word)
    for kind in KINDS
    for word in (words_of(kind) if kind not in ("sweeping", "parts") else [KINDS[kind][0]().algorithm])
]
# Passes over tables need one codebook before the first row is read, and are refused on clusters.
EXACT = [(kind, word) for kind, word in TABLE if not ALGORITHMS[word].online]
ONE_PASS = [(kind, word) for kind, word in TABLE if ALGORITHMS[word].online]


def model_of(kind, word, max_iter=None, **more):
    if max_iter is not None:
        more[PASSES.get(kind, "max_iter")] = max_iter
    return KINDS[kind][0]().set_params(algorithm=word, **more)


def assert_same(one, other):
    """Check that two models and all that they report are equal to the last bit."""
    (header, arrays), (other_header, other_arrays) = (container.from_bytes(to_bytes(model)) for model in (one, other))
    for name, value in header.items():
        assert value == other_header[name], name
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name], err_msg=name)
    assert to_bytes(one) == to_bytes(other)


def delayed_at_random(function, seed=0, most=0.004):
    """Return a function that is sometimes slow."""
    draws, lock = random.Random(seed), threading.Lock()

    @wraps(function)
    def slow(*given, **named):
        with lock:
            seconds = draws.random() * most
        time.sleep(seconds)
        return function(*given, **named)

    return slow

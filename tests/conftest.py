"""Which combinations of parameters run by default, and who compiles which kernels."""

import gc
import warnings
from collections import defaultdict
from random import Random

import law_table
import pytest

from headwater.cli.support import kernel_fits
from headwater.kernels.gaussian import estep_full

WHOLE_RUN = 3000  # tests; fewer need few kernels


def pytest_configure(config):
    """Do not even make the tests of laws that are slow, thousands, where they would be left out."""
    law_table.WITH_SLOW = "not slow" not in config.option.markexpr


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow what `covering` leaves out, before the marks are looked at."""
    products = defaultdict(list)
    for item in items:
        if item.get_closest_marker("covering") and not item.get_closest_marker("slow"):
            products[item.nodeid.split("[")[0]].append(item)
    for name, product in products.items():
        for item in set(product) - set(cover(product, Random(name))):
            item.add_marker(pytest.mark.slow)


def cover(product, random):
    """Return items that together have every value of every parameter, and every combination of those that the mark names.

    Their order is random but fixed, so that values are not paired by their order in the tables.
    """
    together = product[0].get_closest_marker("covering").args
    seen, found = set(), []
    for item in random.sample(product, len(product)):
        given = {name: id(value) for name, value in item.callspec.params.items()}  # all combinations share their values
        values = {("together", *(given.pop(name) for name in together)), *given.items()}
        if not values <= seen:
            seen |= values
            found.append(item)
    return found


def pytest_collection_finish(session):
    """Take all that has been imported out of the sight of the garbage collector, which would go through it again and again."""
    gc.collect()
    gc.freeze()
    share_compilation(session)


def share_compilation(session):
    """Where no kernel is compiled yet, let two workers compile different ones, instead of waiting for each other on the way."""
    worker = getattr(session.config, "workerinput", {"workercount": 1})
    if worker["workercount"] != 2 or len(session.items) < WHOLE_RUN or is_compiled(estep_full):
        return
    words = list(kernel_fits.FITS)
    half = words.index("markov")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for word in words[:half] if worker["workerid"] == "gw0" else words[half:]:
            kernel_fits.run_fits(word)


def is_compiled(kernel):
    """Return whether a kernel is on disk for the sources there are."""
    return bool(kernel._cache._cache_file._load_index())

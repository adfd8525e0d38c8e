"""Which combinations of parameters run by default."""

from collections import defaultdict
from random import Random

import pytest


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

"""Tables of few words, and a dense twin of them."""

import numpy as np

from headwater.families.table import Table

WIDTH, K = 23, 4


def words_of(*words):
    return np.array(words, dtype=np.int32)


def some_words(rng, least=0):
    return rng.permutation(WIDTH)[: rng.integers(least, WIDTH)].astype(np.int32)


def random_table(rng, least=0):
    words = some_words(rng, least)
    return Table.of_words(WIDTH, words, rng.uniform(0.0, 5.0, (len(words), K)))

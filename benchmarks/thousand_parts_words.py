"""Messages of large tables: 100,000 words by 100 components, of which a part touches the words of its documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import headwater as hw
from headwater.core.delta import Delta
from headwater.distributed import tasks
from headwater.distributed.parts import Part, ReadPlan
from headwater.estimators.model_file import from_bytes, to_bytes
from headwater.io.files import messages
from pages.results import Figures

WORDS, COMPONENTS = 100_000, 100
LENGTH, EXPONENT = 100, 1.05
KINDS = (hw.LatentDirichletAllocation, hw.MultinomialMixture)
DOCUMENTS = (500, 5_000)
PARTS = 8  # which is three steps of a tree
BEFORE = 2_000  # documents that the model has learned when parts begin


def documents(number: int, words: int, rng: np.random.Generator) -> Any:
    """Documents of about 100 words, drawn by Zipf's law."""
    chances = np.arange(1, words + 1) ** -EXPONENT
    lengths = 1 + rng.poisson(LENGTH, size=number)
    drawn = rng.choice(words, size=lengths.sum(), p=chances / chances.sum())
    found = sparse.csr_matrix((np.ones(len(drawn)), (np.repeat(np.arange(number), lengths), drawn)), shape=(number, words))
    found.sum_duplicates()
    return found


def table_set(kind: Any, number: int, scale: Any) -> Figures:
    """The bytes of messages by the height in the tree, beside those of the same tables with all words in them."""
    rng = np.random.default_rng(scale.seed)
    model = kind(scale.components, random_state=0, n_threads=1)
    model.partial_fit(documents(BEFORE, scale.words, rng))
    data = to_bytes(model.branch())
    learner = from_bytes(data)._learner
    level = [
        tasks.learn_part(
            data, {}, Part(at, f"part {at}"), (documents(number, scale.words, rng), None, None), ReadPlan("arrays")
        )
        for at in range(PARTS)
    ]
    delta = messages.from_bytes(level[0].data, learner, Delta)
    heights = [mean(level)]
    while len(level) > 1:
        level = [tasks.add_messages(data, {}, level[at], level[at + 1], Delta) for at in range(0, len(level), 2)]
        heights.append(mean(level))
    tables = 1 if delta.average is None else 2
    return {
        "kind": kind.__name__, "words": scale.words, "components": scale.components, "documents": number, "model": len(data),
        "tables": tables, "heights": heights, "merged": level[0].merged, "dense": scale.words * scale.components * 8 * tables,
    }  # fmt: skip


def mean(messages: list[Any]) -> float:
    return float(np.mean([len(message.data) for message in messages]))

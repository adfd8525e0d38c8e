"""What a mixture of tables says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import Limits
from headwater.diagnostics.description import Description, Share, Value, Word
from headwater.estimators.column_kinds import BERNOULLI, CATEGORICAL, IGNORED
from headwater.estimators.describers.family_mixture import FamilyMixtureDescriber
from headwater.estimators.explanation import Explanation
from headwater.estimators.table_schema import EncodedChunk


class TableMixtureDescriber(FamilyMixtureDescriber):
    """Means of numbers, rates of counts and probabilities of categories."""

    def patterns(self) -> None:
        """Return nothing: numbers and shares of categories are no image."""

    def describe(self, limits: Limits) -> Description:
        """Describe components; the deviation of a flag or of a share says nothing beside its probability."""
        found, shares = super().describe(limits), self.model._share_names()

        def told(value: Value) -> Value:
            return (
                Share(value.name, value.value, None, value.low, value.high, value.standing) if value.name in shares else value
            )

        components = tuple(replace(one, values=tuple(map(told, one.values))) for one in found.components)
        return replace(found, components=components)

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first: from what the other columns expect."""
        rows, names = np.asarray(row, dtype=float)[None], getattr(self.model, "feature_names_in_", None)
        reasons = self.model.explain(EncodedChunk(rows, columns=names))
        standing, names = reasons.deviations[0], self.model._column_names
        order = [at for at in reasons.order(most)[0] if not np.isnan(standing[at])]
        return tuple(self._reason(reasons, at, names[at], float(row[at]), float(standing[at])) for at in order)

    def _reason(self, reasons: Explanation, at: int, name: str, value: float, standing: float) -> Value:
        if self.model._schema.kinds[at] in (CATEGORICAL, BERNOULLI):
            tail, word, expected = reasons.tail[0, at], reasons.values[0, at], reasons.expected[0, at]
            return Word(name, float(tail), standing=standing, word=_as_text(word), expected=_as_text(expected))
        low, high = (None if np.isnan(end) else float(end) for end in (reasons.low[0, at], reasons.high[0, at]))
        return Value(name, value, None, low, high, standing)

    def category_texts(self, row: Array) -> dict[int, str]:
        """Return the categories of a row, by the places of their columns; nothing is shown of columns that are left out."""
        schema = self.model._schema
        found = zip(schema.codebook.columns, schema.codebook.levels, strict=True)
        texts = {at: str(levels.decode(row[at : at + 1])[0]) for at, levels in found if row[at] < len(levels)}
        return texts | {at: "" for at, kind in enumerate(schema.kinds) if kind == IGNORED}


def _as_text(word: object) -> str:
    """Return a category as text; one that the column has not had yet has none."""
    if isinstance(word, bool | np.bool_):
        return "yes" if word else "no"
    return "a new category" if word is None else str(word)

"""What a mixture of tables says of itself."""

from __future__ import annotations

import numpy as np

from headwater.core.chunk import Chunk
from headwater.core.statistics import Array
from headwater.diagnostics.description import Value
from headwater.estimators.column_kinds import IGNORED
from headwater.estimators.describers.family_mixture import FamilyMixtureDescriber


class TableMixtureDescriber(FamilyMixtureDescriber):
    """Means of numbers, rates of counts and probabilities of categories."""

    def patterns(self) -> None:
        """Return nothing: numbers and shares of categories are no image."""

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd given the others, the oddest first; of a category its probability."""
        schema, rows = self.model._schema, np.asarray(row, dtype=float)[None]
        reasons = self.model.explain(Chunk(schema.table(rows), getattr(self.model, "feature_names_in_", None)))
        texts, found = self.category_texts(rows[0]), []
        for at in reasons.order(most)[0]:
            standing = float(reasons.deviations[0, at])
            if np.isnan(standing):
                continue
            name, surprise = reasons.columns[at], float(reasons.surprise[0, at])
            if at in texts:
                found.append(Value(f"probability of {name} = {texts[at]}", float(np.exp(-surprise)), standing=-abs(standing)))
            else:
                low, high = (None if np.isnan(end) else float(end) for end in (reasons.low[0, at], reasons.high[0, at]))
                found.append(Value(name, float(row[at]), low=low, high=high, standing=standing))
        return tuple(found)

    def category_texts(self, row: Array) -> dict[int, str]:
        """Return the categories of a row, by the places of their columns; nothing is shown of columns that are left out."""
        schema = self.model._schema
        found = zip(schema.codebook.columns, schema.codebook.levels, strict=True)
        texts = {at: str(levels.decode(row[at : at + 1])[0]) for at, levels in found if row[at] < len(levels)}
        return texts | {at: "" for at, kind in enumerate(schema.kinds) if kind == IGNORED}

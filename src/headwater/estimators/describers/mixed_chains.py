"""What hidden Markov models of tables say of themselves."""

from __future__ import annotations

from headwater.core.statistics import Array
from headwater.diagnostics.description import Value
from headwater.estimators.column_kinds import IGNORED
from headwater.estimators.describers.family_chains import FamilyChainDescriber


class MixedChainDescriber(FamilyChainDescriber):
    """States over rows of a table."""

    def patterns(self) -> None:
        """Return nothing: numbers and shares of categories are no image."""

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return nothing: values of different kinds are not compared."""
        return ()

    def category_texts(self, row: Array) -> dict[int, str]:
        """Return the categories of a row, by the places of their columns; nothing is shown of columns that are left out."""
        schema = self.model._schema
        found = zip(schema.codebook.columns, schema.codebook.levels, strict=True)
        texts = {at: str(levels.decode(row[at : at + 1])[0]) for at, levels in found if row[at] < len(levels)}
        return texts | {at: "" for at, kind in enumerate(schema.kinds) if kind == IGNORED}

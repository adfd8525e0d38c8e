"""names_: components of a mixture have names, which stay with them while the model learns, is saved and is merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from headwater.core.state import Stream
from headwater.core.validation import one_line
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import learns, reads
from headwater.policies.identity import Identity
from headwater.policies.names import IDENTITY

if TYPE_CHECKING:
    from headwater.estimators.estimator_core import EstimatorCore

GENERATED = "component"  # and its number: what a component without a name is called


class NamedComponents(StreamingEstimator):
    """Mixtures whose components may be named."""

    _names: dict[int, str]

    @property
    @reads
    def names_(self) -> NDArray[np.object_]:
        """Name of each component; assign a list of names to give them.

        Names stay with their components while searches move, split and merge these, through `branch`, `merge`, `prune`, `save`
        and `load`. A component that grows later is called by its number, such as `component 4`, until it is named. `fit`
        makes new components, without names, unless `warm_start`.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(2000, 1)) + 9.0 * rng.integers(2, size=(2000, 1))
        >>> model = hw.GaussianMixture(2, random_state=0).partial_fit(rows)
        >>> model.names_ = ["high", "low"] if model.means_[0, 0] > 4.5 else ["low", "high"]
        >>> sorted(model.partial_fit(rows + 0.1).names_.tolist())
        ['high', 'low']
        """
        check_is_fitted(self)
        return np.array(names_of(self) or [f"{GENERATED} {k}" for k in range(self._read().model.n_components)], dtype=object)

    @names_.setter
    def names_(self, names: Iterable[str] | None) -> None:
        self._rename(names)

    @learns
    def _rename(self, names: Iterable[str] | None) -> None:
        check_is_fitted(self)
        if self._runtime.warming_up:
            raise ValueError(f"names_ can be given when the warm-up is over, got them after {self._runtime.rows} rows")
        if self._races_on:
            raise ValueError("names_ can be given when the number of components is found, which still races")
        reading = self._read()
        give_names(self, None if names is None else check_names(names, reading.model.n_components), reading.stream)


def check_names(names: Iterable[str], n_components: int) -> list[str]:
    """Return names of components as a list, or refuse them."""
    if isinstance(names, str | Mapping) or not isinstance(names, Iterable):
        raise TypeError(f"names_ must be a list of {n_components} names, got {type(names).__name__}")
    found = [str(name) if isinstance(name, str) else name for name in names]
    if len(found) != n_components:
        raise ValueError(f"names_ must have a name for each of {n_components} components, got {len(found)}")
    wrong = next((name for name in found if not isinstance(name, str) or not name.strip() or not name.isprintable()), None)
    if wrong is not None or None in found:
        raise ValueError(f"names_ must be words in one line, got {one_line(wrong, 40)}")
    twice = next((name for at, name in enumerate(found) if name in found[:at]), None)
    if twice is not None:
        raise ValueError(f"names_ must differ, got {twice!r} twice")
    return [str(name) for name in found]


def give_names(model: EstimatorCore, names: Sequence[str] | None, stream: Stream | None = None) -> None:
    """Name the components of a stream, which becomes what the model has learned; with None take their names away."""
    runtime = model._runtime
    found = runtime.state if stream is None else stream
    assert isinstance(found, Stream)
    model.__dict__.pop("_names", None)
    if names is None:
        model._runtime = runtime.after(found.without(IDENTITY)) if IDENTITY in found.records else runtime
        return
    known = Identity.of(len(names))
    model._runtime = runtime.after(found.with_record(IDENTITY, known))
    model.__dict__["_names"] = dict(enumerate(names))


def names_of(model: EstimatorCore) -> list[str] | None:
    """Return the names of the components, generated ones for those that came later; None if none were given."""
    given = model.__dict__.get("_names")
    if not given or not model._has_state() or model._runtime.warming_up:
        return None
    stream = model._read().stream
    record = stream.records.get(IDENTITY)
    if record is None or len(record.numbers) != stream.model.n_components:
        return None
    taken = set(given.values())
    found = []
    for number in record.numbers.tolist():
        name = given.get(number)
        if name is None:
            name = f"{GENERATED} {number}"
            while name in taken:
                name += "'"
        found.append(name)
    return found


def shown_names(model: EstimatorCore) -> list[str] | None:
    """Return what components are called in tables, if they have names."""
    return names_of(model) if isinstance(model, NamedComponents) else None


def select_names(model: EstimatorCore, components: NDArray[np.int64], record: Identity | None) -> None:
    """Carry the names over to a model that has some of the components."""
    state = model._runtime.state
    if record is not None and isinstance(state, Stream):
        model._runtime = model._runtime.after(state.with_record(IDENTITY, record.select(components)))


def merge_names(merged: EstimatorCore, models: Sequence[EstimatorCore], reference: int, matches: Sequence[Any]) -> None:
    """Give a merged model the names of its parts: those of the reference, else those of the first that has any."""
    known: dict[int, str] = {}
    for model in (*models, models[reference]):  # the last word is that of the reference
        known |= model.__dict__.get("_names", {})
    state = merged._runtime.state
    if isinstance(state, Stream) and IDENTITY in state.records:
        merged.__dict__["_names"] = known
        return
    for match in matches:
        named = next((models[at] for at in match.models if models[at].__dict__.get("_names")), None)
        names = None if named is None else names_of(named)
        if names is not None and len(names) > max(match.components, default=0) and isinstance(state, Stream):
            if len(match.components) == state.model.n_components == len(set(match.components.tolist())):
                give_names(merged, [names[k] for k in match.components], state)
            return
    merged.__dict__.pop("_names", None)

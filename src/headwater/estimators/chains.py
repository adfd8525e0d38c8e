"""Rows of sequences, and parameters of a chain that the user gave, are checked here, or refused in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from headwater.core.batch import Batch
from headwater.core.chunk import values_of
from headwater.core.statistics import Array
from headwater.core.validation import check_finite, is_in_range, n_dimensions, numeric, one_line, to_gapped
from headwater.core.values import Key, Matrix, Rows, Values
from headwater.estimators.pseudo_rows import gaussian_rows, symbol_rows
from headwater.estimators.start_parameters import seed_at_means
from headwater.families.capabilities import TakesParameters
from headwater.families.categorical import Categorical
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_scaled import ScaledGaussian
from headwater.models.chain_records import ChainParameters

if TYPE_CHECKING:
    from headwater.families.gaussian_records import GaussianParameters

UNLIKELY = 1e-6  # probability that an impossible transition counts as where states of a seed are put in order
ORDERS = 64  # that this begins with, over the number of states


@dataclass(frozen=True)
class Chunk:
    """Rows of a call, checked, with the number of the sequence that each belongs to; and as they were given.

    `opened` are the sequences that are open after them, by name. A row that came alone is not `given`.
    """

    rows: Array
    sequences: NDArray[np.int64]
    given: Rows
    opened: dict[Key, int]

    def __len__(self) -> int:
        return len(self.rows)


def check_chain_rows(X: Rows, owner: str, name: str = "X") -> Array:
    """Return rows of finite numbers, of which some may be missing: NaN in some columns (a gap), or in all."""
    X = values_of(X)
    if issparse(X):
        raise TypeError(f"{name} is a sparse matrix, but {owner} needs dense rows: pass {name}.toarray()")
    array = numeric(X, name, gaps=True)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (rows, columns), got shape {array.shape}. Reshape your data: "
            f"{name}.reshape(-1, 1) if it has a single column, {name}.reshape(1, -1) if it is a single row"
        )
    if 0 in array.shape:
        what = "sample(s)" if array.shape[0] == 0 else "feature(s)"
        raise ValueError(f"{name} has 0 {what} (shape={array.shape}) while a minimum of 1 is required.")
    rows = np.ascontiguousarray(array, dtype=np.float64)
    if not is_in_range(rows):
        to_gapped(rows, name)  # which refuses what is neither a number nor a gap
    return rows


def refuse_part_rows(rows: Array, owner: str) -> None:
    """Refuse rows of a model file of which only a part is missing, where models keep such rows as missing."""
    missing = np.isnan(rows)
    if not np.array_equal(missing.any(axis=1), missing.all(axis=1)):
        raise ValueError(f"it holds rows that are missing in part, which {owner} keeps as missing")


def check_symbols(X: Rows, n_symbols: int | None, owner: str, name: str = "X") -> Array:
    """Return symbols as a column of whole numbers from 0 to n_symbols - 1, NaN where they are missing."""
    X = values_of(X)
    if issparse(X):
        raise TypeError(f"{name} is a sparse matrix, but {owner} needs a column of symbols: pass {name}.toarray()")
    array = numeric(X, name)
    if array.ndim == 2 and array.shape[1] != 1:
        raise ValueError(f"{name} must hold one symbol in each row, shape (n_samples, 1), got {array.shape}")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must be a column of symbols, shape (n_samples, 1), got {array.shape}")
    if not array.size:
        raise ValueError(f"{name} has 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")
    symbols = np.array(array, dtype=np.float64, order="C").reshape(-1, 1)
    present = symbols[~np.isnan(symbols)]
    if present.size:
        wrong = (present != np.round(present)) | (present < 0.0) | (present >= (n_symbols or 2**31))
        if wrong.any():
            upper = f"{n_symbols - 1}" if n_symbols else "2**31 - 1"
            hint = "" if n_symbols is None else " (n_features sets how many symbols there are)"
            value = f"{present[int(np.argmax(wrong))]:g}"
            raise ValueError(f"{name} must hold symbols, whole numbers from 0 to {upper}{hint}, got {value}")
    return symbols


def check_lengths(lengths: Values, rows: int) -> NDArray[np.int64]:
    """Return the lengths of sequences, which add up to the rows."""
    array = np.asarray(numeric(lengths, "lengths"))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"lengths must be a list with the length of each sequence, got shape {array.shape}")
    whole = array.astype(np.float64)
    check_finite(whole, "lengths")
    if np.any(whole != np.round(whole)) or whole.min() < 1.0:
        raise ValueError(f"lengths must be whole numbers of at least 1, got {one_line(lengths, 80)}")
    if whole.sum() != rows:
        raise ValueError(f"lengths must add up to the {rows} rows of X, got {int(whole.sum())}")
    return whole.astype(np.int64)


def one_of(y: Values, lengths: Values) -> object:
    """Return the lengths of sequences, which may stand where scikit-learn has y and hmmlearn has lengths."""
    if y is not None and lengths is not None:
        raise ValueError("lengths must be given once, got them twice: by their name and in the second place")
    return lengths if y is None else y


def check_key(key: Values, name: str = "key") -> str | int | None:
    """Return the name of a sequence: a string or a whole number, or None for the one without a name."""
    if key is None or isinstance(key, str):
        return key if key is None else str(key)
    if isinstance(key, np.integer | int) and not isinstance(key, bool):
        return int(key)
    raise ValueError(f"{name} must be a string or a whole number that names a sequence, got {one_line(key, 80)}")


def check_keys(key: Values, rows: int) -> tuple[list[object], NDArray[np.int64], NDArray[np.int64]]:
    """Return the names of sequences that rows have, where each comes first, and the place among them of each row."""
    if isinstance(key, Mapping):
        raise ValueError("key must name a sequence, or one for each row, got a mapping")
    try:
        given: Matrix = key
        array = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else list(given))
    except TypeError as error:
        raise ValueError(f"key must name a sequence, or one for each row, got {one_line(key, 80)}") from error
    if array.shape != (rows,):
        raise ValueError(f"key must name one sequence for each of the {rows} rows of X, got shape {array.shape}")
    mixed = isinstance(key, list | tuple) and len(set(map(type, key))) > 1  # NumPy would make strings of numbers
    if mixed or array.dtype.kind not in "iuU":
        array = np.array([repr(check_key(name)) for name in given])
    _, first, places = np.unique(array, return_index=True, return_inverse=True)
    order = np.argsort(first)
    names = list(given)
    return [check_key(names[at]) for at in first[order]], first[order], np.argsort(order)[places]


def check_probabilities(value: object, shape: tuple[int, ...], name: str) -> Array:
    """Return probabilities of this shape, whose last axis sums to one."""
    array = check_numbers(value, shape, name)
    if array.min() < 0.0:
        raise ValueError(f"{name} must hold probabilities, which are not negative, got {array.min():g}")
    if not np.allclose(array.sum(axis=-1), 1.0):
        raise ValueError(
            f"{name} must hold probabilities that sum to 1, got sums {np.atleast_1d(array.sum(axis=-1))[:5].tolist()}"
        )
    return array


def check_numbers(value: object, shape: tuple[int, ...], name: str) -> Array:
    """Return finite numbers in this shape; -1 is any length."""
    array = np.array(numeric(value, name), dtype=float)
    if array.ndim != len(shape) or any(wanted not in (-1, found) for wanted, found in zip(shape, array.shape, strict=True)):
        wanted = tuple("any" if size == -1 else size for size in shape)
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, but holds NaN or infinity")
    return array


def precision_factor(covars: Array) -> Array:
    """Lower triangular factors with precision = factor' factor."""
    flipped = np.linalg.cholesky(np.linalg.inv(covars)[..., ::-1, ::-1])
    return np.ascontiguousarray(np.swapaxes(flipped[..., ::-1, ::-1], -1, -2))


@dataclass(frozen=True)
class GivenChain:
    """Puts what the user gave in the place of what a start found, or of what was read out: start, transitions, emissions."""

    family: Any
    start: Array | None = None
    transitions: Array | None = None
    emissions: Mapping[str, Array] | None = None

    @property
    def locates(self) -> bool:
        """Whether it is given where the states lie, or what symbols they have."""
        given = self.emissions or {}
        if isinstance(self.family, TakesParameters):
            return bool(given)
        return "means" in given or "probabilities" in given

    @property
    def in_prior(self) -> bool:
        """Whether the prior of symbols has a row for each state."""
        prior: object = getattr(self.family, "concentration_prior", None)
        return n_dimensions(prior) == 2

    def seed(self, batch: Batch) -> tuple[Batch, Array]:
        """Return rows to find the rest from, and shares of the states in them: the nearest mean, or by the given symbols."""
        assert self.emissions is not None
        if "means" in self.emissions:
            seen, shares = seed_at_means(self.emissions["means"], batch)
            return Batch(seen.X), shares  # chains know no weights
        if isinstance(self.family, TakesParameters):
            return batch, self.states(batch)
        shares = self.emissions["probabilities"].T[batch.X[:, 0].astype(np.int64)] + 1e-300
        return batch, shares / shares.sum(axis=1, keepdims=True)

    def pseudo_rows(self, parameters: ChainParameters, batch: Batch) -> tuple[Array, Array]:
        """Return rows with the moments, or symbols with the probabilities, of the states."""
        if isinstance(self.family, TakesParameters):
            return self.family.pseudo_rows(parameters.emissions)
        if isinstance(self.family, Categorical):
            return symbol_rows(self.family.probabilities(parameters.emissions))
        return gaussian_rows(self.family, parameters.emissions)

    def alone(self) -> ChainParameters:
        """Return these parameters, if all are given."""
        emissions = self.emissions or {}
        names = ("means", "factor") if isinstance(self.family, Gaussian) else ()
        if self.start is None or self.transitions is None or not emissions or any(name not in emissions for name in names):
            raise ValueError(
                "warm_up=0 begins at the start alone, so all parameters must be set and their letters left out of init_params"
            )
        if not isinstance(self.family, Gaussian):
            return ChainParameters(self.start, self.transitions, with_emissions(self.family, None, emissions))
        means = emissions["means"]
        known = self.family.from_precisions(means.mean(axis=0), means, emissions["factor"])
        return ChainParameters(self.start, self.transitions, known)

    def __call__(self, found: ChainParameters) -> ChainParameters:
        """Return the parameters with the given ones in their place."""
        if self.start is not None:
            found = replace(found, start=self.start)
        if self.transitions is not None:
            found = replace(found, transitions=self.transitions)
        if self.emissions:
            found = replace(found, emissions=with_emissions(self.family, found.emissions, self.emissions))
        return found

    @property
    def confines(self) -> bool:
        """Whether some states cannot be the first, or some transitions do not exist."""
        return any(given is not None and not given.all() for given in (self.start, self.transitions))

    def order(self, first: Array, steps: Array, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return which state of a seed is best called which, from how often each begins (K,) and follows another (K, K).

        Pairs are exchanged as long as the counts become more probable by the given chain, from some orders.
        """
        k = len(first)
        log_start = np.zeros(k) if self.start is None else np.log(np.maximum(self.start, UNLIKELY))
        log_steps = np.zeros((k, k)) if self.transitions is None else np.log(np.maximum(self.transitions, UNLIKELY))

        def score(order: NDArray[np.int64]) -> float:
            return float(first[order] @ log_start + (steps[np.ix_(order, order)] * log_steps).sum())

        best, reached = np.arange(k), -np.inf
        for turn in range(max(2, ORDERS // k) if k > 2 else 1):
            order = rng.permutation(k) if turn else np.arange(k)
            now, before = score(order), -np.inf
            while now > before:
                before = now
                for one, other in combinations(range(k), 2):
                    swapped = order.copy()
                    swapped[[one, other]] = order[[other, one]]
                    found = score(swapped)
                    if found > now + 1e-9 * abs(now):
                        order, now = swapped, found
            if now > reached + 1e-9 * abs(now):
                best, reached = order, now
        return best

    def states(self, batch: Batch) -> Array:
        """Return the states (n, K) that rows have by the given components, as if none followed another."""
        given = self.emissions or {}
        whole = isinstance(self.family, TakesParameters)
        if not whole and "factor" not in given:
            return self.seed(batch)[1][-len(batch) :]
        states = np.empty((len(batch), self.family.n_components))
        if whole:
            parameters = self.family.with_parameters(given, None)
        else:
            parameters = self.family.from_precisions(np.zeros(batch.X.shape[1]), given["means"], given["factor"])
        self.family.estep(parameters, np.zeros(self.family.n_components), batch, responsibilities=states, n_threads=1)
        return states


@dataclass(frozen=True)
class Hold:
    """Keeps what is not to be learned: parameters whose letter is missing in `params`."""

    family: Any
    params: str

    def __call__(self, free: ChainParameters, fixed: ChainParameters, count: Array) -> ChainParameters:
        """Return parameters of which only some are free; `count` is how much of each state was seen."""
        start = free.start if "s" in self.params else fixed.start
        transitions = free.transitions if "t" in self.params else fixed.transitions
        emissions = free.emissions
        if not isinstance(self.family, Gaussian):  # whose emissions are learned all, or not at all
            emissions = emissions if set(self.params) - set("st") else fixed.emissions
        elif "m" not in self.params or "c" not in self.params:
            emissions = self._gaussian(emissions, fixed.emissions, count)
        return ChainParameters(start, transitions, emissions)

    def _gaussian(self, free: GaussianParameters, fixed: GaussianParameters, count: Array) -> GaussianParameters:
        family: Gaussian = self.family
        if isinstance(family, ScaledGaussian):  # which learns all of them, so that this is a start
            factor = None if "c" in self.params else fixed.factor / fixed.units
            return family.with_means_and_factor(free, None if "m" in self.params else family.means(fixed), factor)
        means = free.means if "m" in self.params else fixed.means + (fixed.origin - free.origin)
        factor = fixed.factor
        if "c" in self.params:  # about the means that stay
            apart = free.means - means
            covariance = family.covariances(free)
            if family.covariance_type == "tied":
                covariance = covariance + np.einsum("k,ki,kj->ij", count / count.sum(), apart, apart)
            elif family.kind.matrix:
                covariance = covariance + apart[:, :, None] * apart[:, None, :]
            else:
                covariance = covariance + ((apart**2).mean(axis=1) if family.spherical else apart**2)
            factor = precision_factor(covariance) if family.kind.matrix else covariance**-0.5
        elif family.spherical:
            factor = factor[:, 0]
        return family.from_precisions(free.origin, means + free.origin, factor)


def with_emissions(family: Any, found: GaussianParameters | None, given: Mapping[str, Array]) -> object:
    """Return the parameters of a family with those in their place that were given: "means" and "factor", or "probabilities"."""
    if isinstance(family, TakesParameters):
        return family.with_parameters(given, found)
    if "probabilities" in given:
        return family.from_probabilities(given["probabilities"])
    return family.with_means_and_factor(found, given.get("means"), given.get("factor"))

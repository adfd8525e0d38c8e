"""MixedHMM: hidden Markov models of tables: numbers, categories, flags and counts that follow one another."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import AnyArray, Key, Matrix, RandomState, Row, Rows, Values
from headwater.estimators.calls import reads
from headwater.estimators.chains import Chunk
from headwater.estimators.codebook import first_rows
from headwater.estimators.column_kinds import GAUSSIAN, choose_kinds
from headwater.estimators.describers.mixed_chains import MixedChainDescriber
from headwater.estimators.family_hmm import FamilyHMM
from headwater.estimators.forecast import Forecast, Seed
from headwater.estimators.mixed_attributes import MixedAttributes
from headwater.estimators.mixed_family import column_product, known_levels
from headwater.estimators.table_forecast import TableForecast
from headwater.estimators.table_schema import EncodedChunk, TableSchema, one_row_columns, split_table
from headwater.estimators.traits import Taken
from headwater.families.column_steps import check_resolution
from headwater.families.family import AnyFamily
from headwater.families.gaussian import Gaussian
from headwater.families.product import Product, ProductPrior
from headwater.models.chain_records import ChainParameters
from headwater.models.forecasting import FamilyRows, RowForecast, StateForecast

if TYPE_CHECKING:
    from sklearn.utils import Tags


class MixedHMM(MixedAttributes, FamilyHMM):
    """Hidden Markov model of a table: numbers, categories, yes and no, and counts, row after row, with gaps.

    Given the state, numbers are Gaussian (together, with one covariance matrix), and every other column is independent:
    categories have a table of probabilities, flags a probability, counts a rate. Machines that log temperatures, states and
    error counts; patients, customers, plays.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    columns : 'auto' or mapping, default='auto'
        What columns are, by their names or places, as of `MixedMixture`: 'gaussian', 'categorical', 'bernoulli', 'poisson',
        'lognormal', 'gamma', 'zero-inflated-...' or 'ignore'. Those that are not named, or all with 'auto', are decided on the
        first chunk.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Covariance of the numbers.
    reg_covar : float, default=1e-6
        Added to the variances of the numbers.
    resolution : 'auto', None, float or array-like of shape (n_numbers,), default='auto'
        The step that each of the numbers is rounded to, as of `GaussianMixture`. 'auto' finds it on the rows of the warm-up:
        whole numbers make no state thinner than their step.
    max_categories : int, default=256
        Most categories of a column.
    prior_weight : float, default=1.0
        Rows that the prior of all columns but the Gaussian ones is worth: it expects what the rows of the warm-up show.
    startprob_prior, transmat_prior : float or array-like, optional
        Dirichlet parameters of the first state and of the transitions; 1 is flat. By default flat for passes of EM, and a
        tenth of a count in a stream.
    decoder : {'viterbi', 'map'}, default='viterbi'
        What `predict` and `decode` do (hmmlearn's `algorithm`).
    random_state : int, RandomState instance or None, default=None
        Seeds the start, and `sample`.
    n_iter : int, default=10
        Most passes of EM in `fit`.
    tol : float, default=1e-2
        A `fit` ends when a pass gains less in the log-likelihood of all rows.
    verbose : int, default=0
        Whether passes are printed.
    params, init_params : str, default='ste'
        Letters of what is learned, and of what is found at the start: startprob, transmat and emissions. What `init_params`
        leaves out starts as it was set; emissions cannot be set, so 'e' must be in both.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em', 'soem',
        'boem', 'online-vb', 'vb'; or an object such as ``OnlineEM(batch_size=1000)``. With ``batch_size=1`` it learns step by
        step, slowly.
    half_life : float, optional
        Rows after which the weight of a row is halved.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins.
    lag : int, default=50
        Rows that a block looks ahead to.
    n_threads : int, optional
        Threads; all cores by default. The answer is the same.
    implementation : {'log', 'scaling'}, default='log'
        Accepted for compatibility with hmmlearn, and ignored.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', that of the best model so far.
    race_ : Race
        How the numbers that 'auto' tries compare; None if n_components is a number.
    startprob_, transmat_ : ndarray
        What was learned of the chain. They may be set before learning.
    columns_ : dict
        What each column is, by its name.
    resolution_ : dict of float
        Step of each of the numbers, 0 where there is none.
    means_, covariances_ : ndarray
        Of the numbers, in the order of `columns_`.
    rates_, probabilities_, column_parameters_, categories_ : dict
        Of the other columns, by their names, as of `MixedMixture`.
    n_features_in_, n_samples_seen_ : int
        Columns, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> hot = np.arange(3000) // 100 % 2
    >>> log = pd.DataFrame(
    ...     {
    ...         "heat": rng.normal(20.0 + 40.0 * hot, 3.0),
    ...         "light": np.where(rng.random(3000) < 0.1 + 0.8 * hot, "red", "green"),
    ...         "errors": rng.poisson(0.2 + 3.0 * hot),
    ...     }
    ... )
    >>> model = hw.MixedHMM(2, columns={"errors": "poisson"}, random_state=0).fit(log)
    >>> np.sort(model.means_.ravel()).round().tolist()
    [20.0, 60.0]
    >>> model.forecast(2, log).probabilities["light"].shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyHMM._parameter_constraints,
        "columns": [StrOptions({"auto"}), dict],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "reg_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "resolution": [None, StrOptions({"auto"}), Interval(numbers.Real, 0.0, None, closed="left"), "array-like"],
        "max_categories": [Interval(numbers.Integral, 2, 65536, closed="both")],
        "prior_weight": [Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _parameter_constraints.pop("start_weight")
    _traits = replace(
        FamilyHMM._traits,
        takes_tables=True,
        shape_parameters=(*FamilyHMM._traits.shape_parameters, "columns", "covariance_type", "max_categories"),
        prior_parameters=(*FamilyHMM._traits.prior_parameters, "prior_weight", "resolution"),
        before=(("resolution", None),),
        floor_parameters=("reg_covar",),
        merge_parameters=(
            *FamilyHMM._traits.merge_parameters,
            "columns",
            "covariance_type",
            "reg_covar",
            "resolution",
            "max_categories",
            "prior_weight",
        ),
        answers=("startprob_", "transmat_"),
    )
    _letters = "ste"
    start_weight = None
    _emission_names: ClassVar[dict[str, str]] = {"e": "emissions_"}

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        columns: Literal["auto"] | dict[object, str] = "auto",
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        resolution: Values = "auto",
        max_categories: int = 256,
        prior_weight: float = 1.0,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "ste",
        init_params: str = "ste",
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        lag: int = 50,
        n_threads: int | None = None,
        implementation: str = "log",
    ) -> None:
        super().__init__(
            n_components,
            startprob_prior=startprob_prior,
            transmat_prior=transmat_prior,
            decoder=decoder,
            random_state=random_state,
            n_iter=n_iter,
            tol=tol,
            verbose=verbose,
            params=params,
            init_params=init_params,
            algorithm=algorithm,
            half_life=half_life,
            warm_up=warm_up,
            lag=lag,
            n_threads=n_threads,
            implementation=implementation,
        )
        self.__dict__.pop("start_weight")  # which is not a parameter, since emissions cannot be set
        self.columns = columns
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.resolution = resolution
        self.max_categories = max_categories
        self.prior_weight = prior_weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    @property
    def _describer(self) -> MixedChainDescriber:
        return MixedChainDescriber(self)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("params", "init_params"):
            if "e" not in getattr(self, name):
                raise ValueError(f"{name} must name 'e', since emissions cannot be set by hand, got {getattr(self, name)!r}")

    # Columns

    def _schema_of(self, names: list[str] | None, columns: list[object]) -> TableSchema:
        shown = names or [f"x{at}" for at in range(len(columns))]
        return TableSchema.of(choose_kinds(columns, shown, self.columns, self._capacity))

    def _family(self, width: int) -> Product:
        schema = self.__dict__.get("_schema") or TableSchema.of((GAUSSIAN,) * width)
        resolution = check_resolution(self.resolution, schema.kinds.count(GAUSSIAN))
        gaussian = Gaussian(self.n_components, self.covariance_type, self.reg_covar, resolution=resolution)
        return column_product(schema, width, gaussian, self._capacity, self.prior_weight)

    def _known_sizes(self, learner: Learner) -> tuple[int, ...]:
        model: Any = learner.model
        return known_levels(model.family)

    @property
    def _column_family(self) -> AnyFamily:
        return self._model.family

    @property
    def _column_parameters(self) -> Any:
        return self._emissions

    @property
    def _column_prior(self) -> ProductPrior:
        return cast(ProductPrior, self._read().belief[0].emissions)

    def _moments(self) -> tuple[Array, Array]:
        found = self._indicators()
        return np.column_stack([one[1] for one in found]), np.column_stack([one[2] for one in found])

    def _moment_names(self) -> list[str]:
        return [one[0] for one in self._indicators()]

    # Rows

    def _as_rows(self, X: Rows, learning: bool, anew: bool = False) -> Rows:
        return X if isinstance(X, Chunk) else super()._as_rows(X, learning, anew)

    def _numbered(self, X: Rows, lengths: Values, reset: bool, key: Key = None, streaming: bool = False) -> Chunk:
        learning = reset or streaming
        return super()._numbered(self._as_rows(X, learning, reset), lengths, reset, key, streaming)

    def _checked(self, X: Taken, anew: bool = False) -> Array:
        return super()._checked(X)

    def _one(self, x: Row, learning: bool = False) -> Matrix:
        if not learning:
            return super()._one(x)
        return self._encode(*one_row_columns(x, getattr(self, "feature_names_in_", None)), learning=True)

    def _learn_chunk(self, X: Any, sample_weight: Values = None, labels: Values = None, scored: bool = False) -> Array:
        """Learn a chunk in pieces: each begins with a row that has a new category, so that chunks change no answer."""
        schema, rows = self._schema, X.rows
        places = list(schema.codebook.columns)
        before = self._known_sizes(self._runtime.learner) if self._has_state() else (0,) * len(places)
        starts = first_rows(before, list(rows[:, places].T))
        edges, scores = sorted({0, *starts.tolist(), len(rows)}), []
        for start, stop in pairwise(edges):
            sizes = np.fmax(np.nanmax(rows[:stop, places], axis=0, initial=-1.0) + 1.0, before)
            self._schema = schema.cut(sizes.astype(int).tolist())
            piece = slice(start, stop)
            given = replace(X.given, X=rows[piece]) if isinstance(X.given, EncodedChunk) else X.given
            part = replace(X, rows=rows[piece], sequences=X.sequences[piece], given=given)
            scores.append(super()._learn_chunk(part, sample_weight, labels, scored))
        return np.concatenate(scores)

    def _note_columns(self, X: Taken, reset: bool) -> None:
        if isinstance(X, Chunk) and X.given is not None and not isinstance(X.given, EncodedChunk):
            X = replace(X, given=EncodedChunk(X.rows, columns=split_table(X.given, type(self).__name__)[0]))
        super()._note_columns(X, reset)

    def _take(
        self, X: Taken, sample_weight: Values, labels: Values, reset: bool, going_on: bool | None = None
    ) -> tuple[Any, Learner]:
        if reset and np.isnan(X.rows).all():
            raise ValueError("X must have at least one row with a value, got missing values only")
        return super()._take(X, sample_weight, labels, reset, going_on)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array:
        return np.asarray(self._one(x))

    def _anew(self) -> Self:
        other = super()._anew()
        other._share_columns(self)
        return other

    def _is_row(self, X: Rows) -> bool:
        return isinstance(X, Mapping) or super()._is_row(X)

    @reads
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[AnyArray, NDArray[np.int64]]:
        """Draw a sequence.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, optional
            By default that of the model.
        currstate : int, optional
            The state to begin in.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows: numbers, categories and booleans as objects, or an array of numbers if all are. Columns that were left
            out are NaN.
        states : ndarray of shape (n_samples,)
            The states they came from.
        """
        rows, states = super().sample(n_samples, random_state, currstate)
        return self._decoded(rows), states

    # Forecasts

    def _target_places(self, width: int) -> NDArray[np.int64]:
        return np.flatnonzero(self._schema.has_law)

    def _next_rows(self, parameters: ChainParameters, known: Array) -> RowForecast:
        family = cast(Product, self._model.family)
        return FamilyRows(family, parameters.emissions, known, self._target_places(known.shape[1]))

    def _forecast_names(self) -> list[str]:
        return [name for name, known in zip(self._column_names, self._schema.has_law, strict=True) if known]

    def _make_forecast(self, states: StateForecast, rows: RowForecast, seed: Seed) -> Forecast:
        shares = {name: states.laws @ table for name, table in self.probabilities_.items() if table.ndim == 2}
        return TableForecast(states, rows, self._forecast_names(), seed, self._schema, shares)

    # Parameters that are set by hand

    def _parameters_seen(self, name: str | None = None) -> ChainParameters:
        if not self._has_state() and name is None:
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call 'fit' or 'partial_fit'")
        return super()._parameters_seen(name)

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_state()

    def _learned_values(self, names: list[str]) -> dict[str, Array]:
        return super()._learned_values([name for name in names if name not in self._emission_names.values()])

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        return {}

    def _given_width(self) -> int:
        raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call 'fit' or 'partial_fit'")

    def _family_names(self) -> Mapping[str, str]:
        return {}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        raise AssertionError("emissions cannot be set by hand")

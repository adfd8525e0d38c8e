"""The code of the page about new families runs as it stands, and its family obeys every law."""

import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from law_table import ALGORITHM_CASES, is_matching, plain

import headwater as hw
from headwater import registry
from headwater.checks import (
    applicable_laws,
    check_estimator,
    check_laws,
    modes_are_the_best_parameters,
    rows_are_drawn_from_the_density_that_scores_them,
)
from headwater.cli import main
from headwater.core.batch import Batch
from headwater.core.contracts import EXACT, Model, StartSettings
from headwater.families.family import Family
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters

HOME = Path(__file__).parents[2]
PAGE = HOME / "docs" / "contributing" / "new-family.md"
NAME = "a_new_family"


@pytest.fixture(scope="module")
def page():
    """Return the blocks of the page, executed in order, as one module."""
    module = ModuleType(NAME)
    sys.modules[NAME] = module
    text = PAGE.read_text(encoding="utf-8")
    for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        line = text[: found.start()].count("\n") + 1
        exec(compile("\n" * line + found[1], str(PAGE), "exec"), module.__dict__)
    yield module
    registry._ENTRIES.pop("exponential")
    del sys.modules[NAME]


def code_of(words):
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if words in one]
    return block


def test_a_family_and_its_estimator_are_short():
    blocks = [code_of(words) for words in ("class WaitStatistics", "class Exponential(", "class ExponentialMixture")]
    assert sum(block.count("\n") for block in blocks) < 150


def test_few_functions_are_asked_for(page):
    assert len(Family.__abstractmethods__) <= 10 and len(Model.__abstractmethods__) <= 10
    own = {name for name, value in vars(page.Exponential).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert own == Family.__abstractmethods__


def test_nothing_is_left_to_be_implemented():
    for file in (HOME / "src").rglob("*.py"):
        assert "raise NotImplementedError" not in file.read_text(encoding="utf-8"), file


CASES = [
    *({"algorithm": algorithm, **plain(algorithm)} for algorithm in ALGORITHM_CASES if not is_matching(algorithm)),
    {"algorithm": "online-em", "half_life": 80.0}, {"algorithm": "boem", "parts": 3}, {}, {"reservoir": 250},
    {"half_life": 80.0}, {"parts": 3, "reservoir": 250}, {"half_life": "auto", "algorithm": hw.Auto(batch_size=40)},
    {"n_components": "auto", "reservoir": 250}, {"algorithm": hw.Auto(batch_size=1), "reservoir": 250},
]  # fmt: skip


# The page itself tries every law on seven algorithms. By default one setting beside them meets all laws; the others are slow.
FEW = ({"reservoir": 250},)


@pytest.mark.parametrize(
    "options", [one if one in FEW else pytest.param(one, marks=pytest.mark.slow) for one in CASES], ids=str
)
def test_every_law_holds(page, options):
    check_laws(page.PredictiveMixture(**{"n_components": 2, "warm_up": 120, "random_state": 0, **options}), page.rows[:300])


@pytest.mark.parametrize(
    "place", [place for place, one in enumerate(CASES) if one not in FEW], ids=lambda place: str(CASES[place])
)
def test_every_algorithm_is_held_to_a_law(page, place):
    """Each setting that is slow with all laws is tested with one law, in turn."""
    model = page.PredictiveMixture(**{"n_components": 2, "warm_up": 120, "random_state": 0, **CASES[place]})
    laws = list(applicable_laws(model))
    laws[place % len(laws)](model, page.rows[:300])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_it_is_an_estimator_of_scikit_learn(page):
    for kind in (page.ExponentialMixture, page.PredictiveMixture):
        check_estimator(kind(2, random_state=0, warm_up=100), page.rows[:300])


def mixture_of_family(page, **methods):
    """Return an estimator of the page whose family has some methods replaced."""
    family = type("Changed", (page.Exponential,), methods)
    return type("ChangedMixture", (page.ExponentialMixture,), {"_family_of": lambda self, width: family(self.n_components)})


SAMPLES = {
    "a rate for a mean": lambda rate, rng: rng.exponential(rate),
    "a mean that is a tenth off": lambda rate, rng: rng.exponential(1.1 / rate),
    "another shape of the same mean": lambda rate, rng: rng.gamma(1.5, 1.0 / (1.5 * rate)),
    "the next component": lambda rate, rng: rng.exponential(1.0 / np.where(rate > 1.0, rate.min(), rate.max())),
}


@pytest.mark.parametrize("draw", SAMPLES.values(), ids=SAMPLES)
def test_a_sample_of_another_density_breaks_a_law(page, draw):
    wrong = mixture_of_family(page, sample=lambda self, parameters, components, rng, *_: draw(parameters.rate[components], rng))
    with pytest.raises(AssertionError, match="drawn"):
        rows_are_drawn_from_the_density_that_scores_them(wrong(2, algorithm="em", random_state=0), page.rows[:300])


def test_components_that_are_drawn_with_other_rows_break_a_law(page):
    class Wrong(page.ExponentialMixture):
        def sample(self, n_samples=1):
            X, components = super().sample(n_samples)
            return X, 1 - components

    with pytest.raises(AssertionError, match="components are not drawn"):
        rows_are_drawn_from_the_density_that_scores_them(Wrong(2, algorithm="em", random_state=0), page.rows[:300])


def test_a_mode_that_is_a_mean_breaks_a_law(page):
    def readout(self, name, prior, totals):
        return page.Exponential.readout(self, "mean" if name == "mode" else name, prior, totals)

    wrong = mixture_of_family(page, readout=readout)
    with pytest.raises(AssertionError, match="a mode is none"):
        modes_are_the_best_parameters(wrong(2, algorithm="em", random_state=0), page.rows[:300])


def test_there_is_a_predictive_density_where_the_family_has_one(page):
    simple, whole = (kind(2, random_state=0).fit(page.rows[:40]) for kind in (page.ExponentialMixture, page.PredictiveMixture))
    assert not hasattr(simple, "predictive_score_samples")
    far = np.full((1, 2), 1e4)
    assert whole.predictive_score_samples(far) > whole.score_samples(far)
    with pytest.raises(ValueError, match="quasi-bayes"):
        page.ExponentialMixture(2, algorithm="quasi-bayes").partial_fit(page.rows)


def test_default_sums_are_those_of_the_rows(page):
    family, rng = page.Exponential(2), np.random.default_rng(0)
    model, rows = Mixture(2, family), rng.exponential(size=(50, 3))
    components = page.WaitParameters(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0]]), np.log([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0]]))
    parameters = MixtureParameters(np.log([0.3, 0.7]), components)
    labels, weights = np.where(np.arange(50) < 5, 1, -1), rng.uniform(size=50)
    scores, shares = np.empty(50), np.empty((50, 2))
    summary = model.summarize(parameters, Batch(rows, weights, labels), scores=scores, responsibilities=shares)
    for row, label, score, share in zip(rows, labels, scores, shares, strict=True):
        joint = [w * np.prod(rate * np.exp(-rate * row)) for w, rate in zip([0.3, 0.7], components.rate, strict=True)]
        if label >= 0:
            joint[1 - label] = 0.0
        np.testing.assert_allclose(share, joint / np.sum(joint))
        np.testing.assert_allclose(score, np.log(np.sum(joint)))
    np.testing.assert_allclose(summary.statistics.count, weights @ shares)
    np.testing.assert_allclose(summary.statistics.time, (weights[:, None] * shares).T @ rows)
    np.testing.assert_allclose(summary.score, weights @ scores)


def test_divergences_are_near_the_exact_ones(page):
    family = page.Exponential(2)
    prior = page.GammaPrior(np.full((2, 1), 2.0), np.ones((2, 1)))
    one = page.WaitStatistics.of(np.full(2, 1000.0), np.array([[1000.0], [2000.0]]))
    rates = family.readout("mean", prior, one).rate[:, 0]
    exact = np.array([[a / b + b / a - 2.0 for b in rates] for a in rates])  # of two Exponentials, in both directions
    np.testing.assert_allclose(family.separation(prior, one, one), 1000.0 * exact, rtol=0.2, atol=1e-9)
    np.testing.assert_array_equal(family.contrast(prior, one, one), 0.0)
    other = family.select_statistics(one, [1, 0])
    np.testing.assert_allclose(family.contrast(prior, one, other), exact[0, 1], rtol=0.2)


def test_it_has_a_word(page, capsys, tmp_path):
    data, file = str(tmp_path / "waits.csv"), str(tmp_path / "waits.hw")
    np.savetxt(data, page.rows[:500], delimiter=",", header="first,second", comments="")
    assert main(["fit", "exponential", data, "-k", "2", "-o", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == "ExponentialMixture" and told["rows"] == 500
    for command in (["inspect", file], ["sample", file, "-n", "3"], ["convert", file], ["score", file, data]):
        assert main(command) == 0
    assert main(["report", file, "-o", str(tmp_path / "waits.html")]) == 0
    assert "ExponentialMixture" in (tmp_path / "waits.html").read_text(encoding="utf-8")
    model = page.ExponentialMixture(2, random_state=0).partial_fit(page.rows[:500])
    np.testing.assert_allclose(np.sort(hw.load(file).rates_[:, 0]), np.sort(model.rates_[:, 0]), rtol=0.2)
    assert main(["fit", "exponential", data, "-k", "2", "--algorithm", "quasi-bayes"]) != 0


def test_a_word_that_is_taken_is_refused(page):
    with pytest.raises(ValueError, match="'gaussian', which is that of GaussianMixture"):
        registry.register(registry.Entry("gaussian", "ExponentialMixture", "", NAME))


def test_negative_times_are_refused(page):
    with pytest.raises(ValueError, match="Negative values in data passed to ExponentialMixture: X holds -1"):
        page.ExponentialMixture(2).partial_fit(-np.ones((9, 2)))


@pytest.mark.parametrize("damage", ["count", "time"])
def test_a_made_up_file_is_refused(page, tmp_path, damage):
    from headwater.estimators.model_file import pack, unpack
    from headwater.io.files.records import Damaged

    header, arrays = pack(page.PredictiveMixture(2, random_state=0, warm_up=100, reservoir=0).partial_fit(page.rows[:300]))
    (name,) = [name for name in arrays if name.endswith(f"state/statistics/{damage}")]
    arrays[name] = -arrays[name]
    with pytest.raises(Damaged, match="state/statistics has"):
        unpack(header, arrays, {})


def test_it_can_be_the_states_of_a_chain(page):
    rng = np.random.default_rng(3)
    states = np.cumsum(rng.random(3000) < 0.05) % 2
    X = rng.exponential(np.where(states == 1, 8.0, 0.5))[:, None]
    model = HiddenMarkov(2, page.Exponential(2))
    start = model.start(Batch(X, sequences=np.zeros(3000, dtype=np.int64)), 0, StartSettings())
    np.testing.assert_allclose(np.sort(1.0 / start.parameters.emissions.rate[:, 0]), [0.5, 8.0], rtol=0.2)
    np.testing.assert_allclose(np.diagonal(start.parameters.transitions), 0.95, atol=0.02)
    assert not model.sweeps(EXACT)  # rows are folded in batches: the family has no kernel for chains

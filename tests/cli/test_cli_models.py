"""Every kind of model, from a file to scores."""

import csv
import json

import numpy as np
import pytest

import headwater as hw
from headwater.cli import main
from headwater.registry import MODELS

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 3)) + 5.0 * RNG.integers(2, size=(120, 1))
SYMBOLS = RNG.integers(3, size=120).astype(float)
KEYS = np.arange(120) // 6

# The data of each kind, as columns of a matrix, and what else its command needs.
DATA = {
    "gaussian": (ROWS, ["-k", "2"]),
    "student": (ROWS, ["-k", "2"]),
    "bayesian": (ROWS, ["-k", "2"]),
    "multinomial": (np.abs(ROWS).round(), ["-k", "2"]),
    "poisson": (np.abs(ROWS).round(), ["-k", "2"]),
    "bernoulli": ((ROWS > 2.0).astype(float), ["-k", "2"]),
    "categorical": ((ROWS > 2.0) + RNG.integers(2, size=(120, 3)), ["-k", "2"]),
    "mixed": (ROWS, ["-k", "2"]),
    "markov": (np.column_stack([KEYS, SYMBOLS]), ["-k", "2", "--key", "x0", "--set", "n_symbols=3"]),
    "regression": (ROWS, ["-k", "2", "--target", "x2"]),
    "vmf": (ROWS, ["-k", "2"]),
    "lda": (np.abs(ROWS).round(), ["-k", "2"]),
    "nmf": (ROWS**2, ["-k", "2"]),
    "hmm": (np.column_stack([KEYS, ROWS]), ["-k", "2", "--key", "x0"]),
    "categorical-hmm": (np.column_stack([KEYS, SYMBOLS]), ["-k", "2", "--key", "x0", "--set", "n_features=3"]),
    "poisson-hmm": (np.column_stack([KEYS, np.abs(ROWS).round()]), ["-k", "2", "--key", "x0"]),
    "bernoulli-hmm": (np.column_stack([KEYS, ROWS > 2.0]), ["-k", "2", "--key", "x0"]),
    "gmm-hmm": (np.column_stack([KEYS, ROWS]), ["-k", "2", "--key", "x0", "--set", "n_mix=2"]),
    "semi-markov": (np.column_stack([KEYS, ROWS]), ["-k", "2", "--key", "x0", "--set", "max_duration=6"]),
    "mixed-hmm": (np.column_stack([KEYS, ROWS]), ["-k", "2", "--key", "x0"]),
    "regression-hmm": (np.column_stack([KEYS, ROWS]), ["-k", "2", "--key", "x0", "--target", "x3"]),
    "autoregressive-hmm": (np.column_stack([KEYS, ROWS]), ["-k", "2", "--key", "x0"]),
    "arrival": (ROWS + 1j * ROWS[::-1], []),
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Return a function that returns a data file and a model of each kind. They are made on the first call."""
    place, made = tmp_path_factory.mktemp("models"), {}

    def get(word):
        if word not in made:
            data, options = DATA[word]
            np.save(place / f"{word}.npy", data)
            files = [str(place / f"{word}.npy"), str(place / f"{word}.hw")]
            assert main(["fit", word, files[0], *options, "-o", files[1], "--chunk-rows", "32", "--json"]) == 0
            made[word] = files
        return made[word]

    return get


def table(text):
    return list(csv.DictReader(text.splitlines()))


def test_every_kind_is_tried():
    assert set(DATA) == set(MODELS)


@pytest.mark.parametrize("word", MODELS)
def test_a_model_is_what_python_makes_of_the_same_rows(word, learned, capsys):
    _, file = learned(word)
    model = hw.load(file)
    assert type(model).__name__ == MODELS[word].name
    assert model.n_samples_seen_ == (20 if word == "markov" else 120)
    assert main(["inspect", file, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out[out.rindex('{\n  "title"') :])["rows"] == model.n_samples_seen_ and err == ""


@pytest.mark.parametrize("word", MODELS)
def test_scores_do_not_depend_on_chunks(word, learned, capsys, tmp_path):
    data, file = learned(word)
    found = []
    for rows in ("16", "64"):
        capsys.readouterr()
        assert main(["score", file, data, "--chunk-rows", rows, "--rate", "0.1", "--rank"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        found.append(table(out))
    if MODELS[word].kind._traits.takes_sequences:
        assert main(["score", file, data, "--keep", "x0"]) == 2
        assert "leave out --keep" in capsys.readouterr().err
    assert len(found[0]) == len(found[1]) == (20 if word == "markov" else 120)
    for name in found[0][0]:
        one, other = ([row[name] for row in rows] for rows in found)
        if name in ("score", "prediction", "rank"):
            np.testing.assert_allclose(np.array(one, float), np.array(other, float), rtol=1e-9, atol=1e-12)
        else:
            assert one == other


@pytest.mark.parametrize("word", MODELS)
def test_every_kind_draws(word, learned, capsys, tmp_path):
    data, file = learned(word)
    capsys.readouterr()
    inputs = [data] if word.startswith("regression") else ["-n", "5"]
    assert main(["sample", file, *inputs, "--seed", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = table(out)
    assert ("state" in rows[0]) == MODELS[word].kind._traits.chained and ("symbol" in rows[0]) == MODELS[
        word
    ].kind._traits.takes_symbols
    assert rows and all(np.isfinite(float(value)) for row in rows for value in row.values())
    assert main(["sample", file, *inputs, "--seed", "3"]) == 0
    assert capsys.readouterr().out == out
    if word == "regression":
        assert main(["sample", file, data, "-n", "2"]) == 2
        assert "leave out -n" in capsys.readouterr().err
        np.save(tmp_path / "inputs.npy", DATA[word][0][:, :2])
        assert main(["score", file, str(tmp_path / "inputs.npy"), "--rank"]) == 1
        assert "can be ranked only with the target" in capsys.readouterr().err


@pytest.mark.parametrize("word", MODELS)
def test_every_kind_is_written_as_json(word, learned, capsys):
    _, file = learned(word)
    capsys.readouterr()
    assert main(["convert", file]) == 0
    told = json.loads(capsys.readouterr().out)
    model = hw.load(file)
    assert told["word"] == word and set(told["learned"]) == set(type(model)._traits.answers)
    for name, value in told["learned"].items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(getattr(model, name)))


@pytest.mark.parametrize("word", MODELS)
def test_every_kind_goes_on_learning(word, learned, capsys, tmp_path):
    data, file = learned(word)
    again = tmp_path / "again.hw"
    if word == "markov":
        more = DATA[word][0].copy()
        np.save(tmp_path / "more.npy", more)
        data = str(tmp_path / "more.npy")
    assert main(["fit", file, data, "-o", str(again), "--json"]) == 0
    assert hw.load(again).n_samples_seen_ == 2 * hw.load(file).n_samples_seen_


@pytest.fixture
def documents(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array(["river", "water", "boat", "fish", "market", "price", "trade", "bank"])
    path = tmp_path / "documents.txt"
    path.write_text("\n".join(" ".join(rng.choice(words[4 * (at % 2) :][:4], 12)) for at in range(2000)))
    return path


def fitted_topics(documents, path):
    command = ["lda", str(documents), "-k", "2", "--set", "warm_up=100", "--read", "chunk_rows=128"]
    assert main(["fit", *command, "-o", path]) == 0
    return hw.load(path)


def test_topics_tell_the_perplexity_of_a_word(documents, tmp_path, capsys):
    path = str(tmp_path / "topics.hw")
    history = fitted_topics(documents, path).history_
    said = capsys.readouterr().out
    assert f"nats per document (perplexity {history.late_perplexity:.4g} per word), the mean of " in said
    assert f"{history.late_scored:,} documents in the last half of the stream" in said
    assert 3.5 < history.late_perplexity < 6.0
    assert main(["inspect", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["held_out"]["perplexity"] == pytest.approx(history.late_perplexity)


@pytest.mark.slow
def test_reports_and_comparisons_tell_the_perplexity_of_a_word(documents, tmp_path, capsys):
    page = hw.report(fitted_topics(documents, str(tmp_path / "topics.hw")), documents)
    assert "perplexity per word of the last half" in page and "perplexity per word of these documents" in page
    assert main(["compare", "lda", str(documents), "-k", "2", "--algorithms", "auto", "--set", "warm_up=100"]) == 0
    assert "perplexity per word" in capsys.readouterr().out

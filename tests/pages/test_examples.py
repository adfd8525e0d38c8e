"""The examples on counts: their figures on simulated data, their pages, and quick runs."""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from page_checks import complete, page_of

pytest.importorskip("examples", reason="run from the root of the repository")

from examples import msnbc, msnbc_values, newsgroups, newsgroups_values
from pages.__main__ import main

DIRECTORY = os.environ.get("HEADWATER_DATA", "")
CATEGORIES = ["front", "news", "sports", "weather"]
GROUPS, WORDS = ["cars", "space", "guns"], [f"word{at}" for at in range(30)]


# Simulated data


def drawn_sessions(number=900, seed=0):
    """Return sessions of two kinds: one stays on its page, one goes round; the first session is very long."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([1, 1, 2, 3, 8], size=number)
    lengths[0] = 300
    parts = []
    for length in lengths:
        round_trip = rng.uniform() < 0.4
        first = rng.integers(4)
        step = (rng.uniform(size=length) < (0.9 if round_trip else 0.1)).astype(int)
        step[0] = 0
        parts.append((first + np.cumsum(step)) % 4)
    return np.concatenate(parts).astype(np.uint8), lengths.astype(np.uint16)


def drawn_documents(number=180, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(3, size=number))
    topics = np.full((3, 30), 0.2)
    for group in range(3):
        topics[group, 10 * group : 10 * group + 10] = 2.0
    rows = np.stack([rng.multinomial(20, topics[group] / topics[group].sum()) for group in groups])
    rows[5] = 0
    return rows, groups


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Return a directory of data sets, in the format of the real ones."""
    made = tmp_path_factory.mktemp("data")
    values, lengths = drawn_sessions(2600)
    (made / "msnbc").mkdir()
    np.savez(made / "msnbc" / "msnbc.npz", values=values, lengths=lengths, categories=np.array(CATEGORIES))
    rows, groups = drawn_documents()
    places = np.nonzero(rows)
    (made / "newsgroups20").mkdir()
    np.savez(
        made / "newsgroups20" / "newsgroups20.npz",
        data=rows[places].astype(np.uint16), indices=places[1].astype(np.uint16),
        indptr=np.concatenate([[0], np.cumsum((rows > 0).sum(axis=1))]), shape=np.array(rows.shape), vocab=np.array(WORDS),
        label=groups.astype(np.int8), label_names=np.array(GROUPS), is_test=np.arange(len(groups)) % 3 == 0,
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def sessions(directory):
    return msnbc.Sessions.load(directory / "msnbc" / "msnbc.npz", 900)


@pytest.fixture(scope="module")
def corpus(directory):
    return newsgroups.Corpus.load(directory / "newsgroups20" / "newsgroups20.npz")


# Web sessions


def one_by_one(sessions):
    return np.split(sessions.values, np.cumsum(sessions.lengths)[:-1])


def test_sessions_stay_whole(sessions):
    learn, held_out = sessions.split()
    assert (len(sessions), len(learn), len(held_out)) == (900, 810, 90)
    whole = one_by_one(sessions)
    kept = [one for at, one in enumerate(whole) if at % 10 != 9]
    for found, wanted in zip(one_by_one(learn), kept, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(held_out.values, np.concatenate(whole[9::10]))
    chunks = [*learn.chunks(100)]
    assert [len(chunk) for _, chunk in chunks] == [100] * 8 + [10]
    np.testing.assert_array_equal(np.concatenate([chunk.values for _, chunk in chunks]), learn.values)
    np.testing.assert_array_equal(np.concatenate([learn.lengths[place] for place, _ in chunks]), learn.lengths)


def test_counts_and_steps_are_those_of_a_loop(sessions):
    counts, steps = np.zeros((900, 4)), []
    for at, views in enumerate(one_by_one(sessions)):
        np.add.at(counts[at], views, 1.0)
        steps += [(at, int(page), int(following)) for page, following in pairwise(views)]
    np.testing.assert_array_equal(sessions.counts().toarray(), counts)
    assert [*zip(*(part.tolist() for part in sessions.steps()), strict=True)] == steps


def test_one_chain_scores_what_its_counts_say(sessions):
    learn, held_out = sessions.split()
    model = msnbc.streamed(1, learn, 0)
    start, steps = np.full(4, 0.1), np.full((4, 4), 0.1)
    for views in one_by_one(learn):
        start[views[0]] += 1.0
        np.add.at(steps, (views[:-1], views[1:]), 1.0)
    start, steps = np.log(start / start.sum()), np.log(steps / steps.sum(axis=1, keepdims=True))
    wanted = sum(start[views[0]] + steps[views[:-1], views[1:]].sum() for views in one_by_one(held_out))
    np.testing.assert_allclose(msnbc.per_view(model, held_out), wanted / len(held_out.values), rtol=1e-9)


@pytest.mark.slow
def test_learners_differ_and_chains_find_what_counts_cannot(sessions):
    learn, held_out = sessions.split()
    found = msnbc.compared(2, learn, held_out, 0)
    assert set(found) == {msnbc_values.MARKOV, msnbc_values.EM, msnbc_values.COUNTS, msnbc_values.BOTH}
    scores = {name: one["score"] for name, one in found.items()}
    assert scores["counts"] < scores["chains of counts"] < scores["stream"]
    assert scores["stream"] > msnbc.compared(1, learn, held_out, 0)["stream"]["score"] + 0.05
    assert found["em"]["passes"] >= 1 and found["stream"]["seconds"] > 0.0


def test_portraits_count_the_sessions_of_their_cluster(sessions):
    learn, held_out = sessions.split()
    model = msnbc.streamed(2, learn, 0)
    found = msnbc.portraits(model, held_out)
    assert [one["weight"] for one in found] == sorted((one["weight"] for one in found), reverse=True)
    cluster = model.predict(held_out.values, held_out.lengths) == np.argmax(model.weights_)
    own = [views for views, mine in zip(one_by_one(held_out), cluster, strict=True) if mine]
    assert found[0]["sessions"] == len(own)
    assert found[0]["single"] == sum(len(views) == 1 for views in own)
    assert found[0]["views"] == np.bincount(np.concatenate(own), minlength=4).tolist()
    assert sum(map(sum, found[0]["steps"])) == sum(len(views) - 1 for views in own)


def test_a_cluster_is_described_by_its_numbers():
    one = {
        "weight": 0.25, "start": [0.7, 0.26, 0.04, 0.0], "views": [50, 30, 20, 0], "sessions": 40, "single": 10,
        "steps": [[20, 10, 0, 0], [6, 20, 0, 0], [0, 4, 0, 0], [0, 0, 0, 0]],
    }  # fmt: skip
    assert msnbc_values.described(one, CATEGORIES) == (
        "**front, news** (25 % of the sessions): starts at front (70 %) and news (26 %); 67 % of its steps stay in their "
        "category; the most common others are front → news (17 %), news → front (10 %) and sports → news (6.7 %); 2.5 views on "
        "average, 25 % of its sessions are one view."
    )
    none = {"weight": 0.0, "start": [1.0, 0.0, 0.0, 0.0], "views": [0] * 4, "sessions": 0, "single": 0, "steps": [[0] * 4] * 4}
    assert msnbc_values.described(none, CATEGORIES).endswith("starts at front (100 %).")


# Newsgroups


def test_documents_are_split_and_some_are_labelled(corpus):
    rows, groups = drawn_documents()
    test = np.arange(180) % 3 == 0
    np.testing.assert_array_equal(corpus.learn.toarray(), rows[~test])
    np.testing.assert_array_equal(corpus.judge.toarray(), rows[test])
    np.testing.assert_array_equal(corpus.learn_groups, groups[~test])
    rng = np.random.default_rng(0)
    assert (corpus.labels(0, rng) == -1).all()
    np.testing.assert_array_equal(corpus.labels(100, rng), corpus.learn_groups)
    for percentage, share in ((1, 3), (50, 20)):
        labels = corpus.labels(percentage, rng)
        told = labels >= 0
        np.testing.assert_array_equal(labels[told], corpus.learn_groups[told])
        assert all(share - 5 < number < share + 5 for number in np.bincount(labels[told], minlength=3))
    assert np.bincount(corpus.labels(1, rng) + 1)[1:].tolist() == [3, 3, 3]


def test_matching_undoes_a_renaming():
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    predicted = np.array([2, 2, 2, 0, 0, 2, 1, 1])
    np.testing.assert_array_equal(newsgroups.matched(predicted, groups, 3), [1, 2, 0])


@pytest.mark.parametrize("name", [*newsgroups.LEARNERS])
def test_every_learner_finds_the_groups(corpus, name):
    rng = np.random.default_rng(1)
    order, labels = rng.permutation(len(corpus.learn_groups)), corpus.labels(30, rng)
    learned = newsgroups.LEARNERS[name](corpus, labels, order, 0)
    found = newsgroups.outcome(learned, corpus)
    assert found["matched"] > 0.85 and found["nmi"] > 0.5 and found["ari"] > 0.5
    if name == newsgroups_values.KMEANS:
        assert found["score"] is None
    else:
        assert found["accuracy"] > 0.85 and np.log(1 / 30) - 0.5 < found["score"] < 0.0


def test_all_labels_make_the_mixture_naive_bayes(corpus):
    rng = np.random.default_rng(2)
    labels = corpus.labels(100, rng)
    order = rng.permutation(len(labels))
    mine = newsgroups.stream(corpus, labels, order, 0)
    peer = newsgroups.MultinomialNB(alpha=0.1).fit(corpus.learn, labels)
    np.testing.assert_allclose(mine.model.probabilities_, np.exp(peer.feature_log_prob_), rtol=1e-6)


def test_components_are_described_by_their_words(corpus):
    order = np.arange(len(corpus.learn_groups))
    learned = newsgroups.stream(corpus, corpus.learn_groups, order, 0)
    found = newsgroups.components(learned, corpus)
    assert [one["group"] for one in found] == GROUPS
    for group, one in enumerate(found):
        assert {int(word[4:]) // 10 for word in one["words"]} == {group}
        assert one["matched"] == one["group"] and one["share"] > 0.8
    assert sum(one["documents"] for one in found) == len(corpus.judge_groups)


# The pages


def test_a_difference_in_words():
    assert newsgroups_values.compared(0.5, 0.4) == "10.0 points above" and newsgroups_values.compared(0.4, 0.4) == "level with"


def made_up_run(score):
    return {"score": score, "seconds": 2.0, "megabytes": 3.2}


def made_up_sessions():
    """Return figures in which one pass has three quarters of EM's gain."""
    sets = {"components/1": {"components": 1, "runs": {"stream": [made_up_run(-1.6)], "counts": [made_up_run(-2.0)]}}}
    for k, gain in ((2, 0.2), (4, 0.4)):
        sets[f"components/{k}"] = {"components": k, "runs": {
            "stream": [made_up_run(-1.6 + 0.75 * gain)], "counts": [made_up_run(-1.9)],
            "em": [made_up_run(-1.6 + gain) | {"passes": 9, "converged": True, "seconds": 8.0, "megabytes": 160.0}],
            "chains of counts": [{"score": -1.6, "agreement": 0.5, "em agreement": 0.6}],
        }}  # fmt: skip
    cluster = {
        "weight": 1.0, "start": [0.5, 0.5], "transitions": [[0.9, 0.1], [0.2, 0.8]], "steps": [[9, 1], [2, 8]],
        "views": [12, 8], "sessions": 5, "single": 1,
    }  # fmt: skip
    facts = {
        "sessions": 900, "views": 4000, "held_out": 100, "held_out_views": 400, "chunk": 10_000, "every": 10, "seeds": 1,
        "median_length": 2.0, "longest": 99, "single": 0.37, "bytes": 11e6, "categories": ["front", "news"],
    }  # fmt: skip
    return {"sessions": facts, "clusters": {"clusters": [cluster]}, **sets}


def test_the_page_says_what_the_figures_of_sessions_say():
    text = complete(page_of(msnbc.PAGE, chains=made_up_sessions()))
    assert "one pass has 75 % with 2 and 75 % with 4 components; EM takes 4.0 to 4.0 times as long" in text
    assert "| 4 | -1.3000 | 2.0 | 450 | 3 | -1.2000 | 8.0 | 9 | 160 |" in text
    assert (
        "a fair choice among 4.95 with one chain and among 3.67 with 4 components; the held-out score is still rising" in text
    )
    assert "| 2 | -1.4500 | -1.9000 | -1.6000 | 0.50 | 0.60 |" in text
    assert "Without the order a page view loses 0.45 nats (with 2 components) to 0.60 (with 4)" in text
    assert "found without the order lose 0.150 to 0.300 nats" in text


def made_up_newsgroups(stream):
    """Return figures with naive Bayes at 0.5 and all others at 0.6, except one pass."""

    def one(accuracy):
        return [{"accuracy": accuracy, "matched": 0.6, "nmi": 0.5, "ari": 0.4, "score": -8.0, "seconds": 0.5}]

    names = {0: newsgroups.NONE, 1: newsgroups.SOME, 100: newsgroups.ALL}
    special = {newsgroups_values.STREAM: stream, newsgroups_values.NB: 0.5}
    sets = {
        f"labels/{part}": {"percentage": part, "labelled": 4 * part, "runs": {n: one(special.get(n, 0.6)) for n in learners}}
        for part, learners in names.items()
    }
    sets["labels/0"]["runs"][newsgroups_values.KMEANS][0]["score"] = None
    component = {"group": "cars", "share": 0.8, "documents": 9, "weight": 0.5, "words": ["engine", "road"], "matched": "guns"}
    facts = {
        "documents": 100, "judged": 50, "words": 30, "tokens": 2000, "groups": 2, "chunk": 500, "seeds": 1, "folds": 3,
        "alphas": [0.1, 1.0], "kmeans_starts": 3,
    }  # fmt: skip
    return {"corpus": facts, "components": {"components": [component]}, **sets}


def test_the_page_says_what_the_figures_of_newsgroups_say():
    text = complete(page_of(newsgroups.PAGE, learners=made_up_newsgroups(0.3)))
    assert "Without labels one pass puts 60 % of the test documents into the right group, level with k-means" in text
    assert "10.0 points above naive Bayes" in text and "end 30.0 points below labels that come first." in text
    assert "renamed afterwards, that stream would have 30.0 points more" in text
    assert "| cars | 80 % | 9 | 0.500 | engine, road | guns |" in text
    assert "drawn at random: 4 (1 %) of 100 documents." in text
    better = page_of(newsgroups.PAGE, learners=made_up_newsgroups(0.6))
    assert "level with labels that come first." in better and "renamed afterwards" not in better


# The commands


@pytest.mark.slow
@pytest.mark.parametrize("name", ["msnbc", "newsgroups"])
def test_a_quick_run_on_stand_ins(name, directory, tmp_path):
    assert main([name, "--quick", "--data", str(directory), "--out", str(tmp_path)]) == 0
    text = (tmp_path / f"{name}.md").read_text()
    complete(text)
    (tmp_path / f"{name}.md").unlink()
    (tmp_path / f"{name}.png").unlink()
    assert main([name, "--render", "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.md").read_text() == text
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.data
@pytest.mark.skipif(not DIRECTORY or not Path(DIRECTORY).is_dir(), reason="HEADWATER_DATA names no directory")
@pytest.mark.parametrize("page", [msnbc.PAGE, newsgroups.PAGE], ids=lambda page: page.name)
def test_a_small_part_of_the_real_data(page, tmp_path):
    if not all((Path(DIRECTORY) / file).is_file() for file in page.needs):
        pytest.skip(f"HEADWATER_DATA has no {page.needs}")
    assert main([page.name, "--quick", "--data", DIRECTORY, "--out", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / f"{page.name}.json").read_text())["figures"]
    if page is msnbc.PAGE:
        clusters = figures["chains"]["clusters"]["clusters"]
        assert len(clusters) == page.quick.shown
        np.testing.assert_allclose(sum(one["weight"] for one in clusters), 1.0, rtol=1e-3)
    else:
        runs = {part: figures["learners"][f"labels/{part}"]["runs"][newsgroups_values.STREAM][0] for part in (0, 100)}
        assert runs[100]["accuracy"] > 0.5 and runs[0]["matched"] > 0.2

"""The examples on made-up stand-ins for their data: what they count, what they say, and the commands from end to end."""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("examples", reason="run from the root of the repository")

from examples import command, msnbc, msnbc_page, newsgroups, newsgroups_page
from examples.page import page
from examples.tables import listed, percent, spread

DIRECTORY = os.environ.get("HEADWATER_DATA", "")
CATEGORIES = ["front", "news", "sports", "weather"]
GROUPS, WORDS = ["cars", "space", "guns"], [f"word{at}" for at in range(30)]


# Stand-ins


def drawn_sessions(number=900, seed=0):
    """Sessions of two kinds: one stays where it is, one goes round; the first session is very long."""
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
    """A directory of data sets, in the form of the real ones."""
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
def test_learners_are_told_apart_and_chains_find_what_counts_cannot(sessions):
    learn, held_out = sessions.split()
    found = msnbc.compared(2, learn, held_out, 0)
    assert set(found) == {msnbc_page.MARKOV, msnbc_page.EM, msnbc_page.COUNTS, msnbc_page.BOTH}
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
    assert msnbc_page.described(one, CATEGORIES) == (
        "**front, news** (25 % of the sessions): starts at front (70 %) and news (26 %); 67 % of its steps stay in their "
        "category; the commonest others are front → news (17 %), news → front (10 %) and sports → news (6.7 %); 2.5 views on "
        "average, 25 % of its sessions are one view."
    )
    none = {"weight": 0.0, "start": [1.0, 0.0, 0.0, 0.0], "views": [0] * 4, "sessions": 0, "single": 0, "steps": [[0] * 4] * 4}
    assert msnbc_page.described(none, CATEGORIES).endswith("starts at front (100 %).")


# Newsgroups


def test_documents_are_split_and_labels_told(corpus):
    rows, groups = drawn_documents()
    test = np.arange(180) % 3 == 0
    np.testing.assert_array_equal(corpus.learn.toarray(), rows[~test])
    np.testing.assert_array_equal(corpus.judge.toarray(), rows[test])
    np.testing.assert_array_equal(corpus.learn_groups, groups[~test])
    rng = np.random.default_rng(0)
    assert (corpus.told(0, rng) == -1).all()
    np.testing.assert_array_equal(corpus.told(100, rng), corpus.learn_groups)
    for percentage, share in ((1, 3), (50, 20)):
        labels = corpus.told(percentage, rng)
        told = labels >= 0
        np.testing.assert_array_equal(labels[told], corpus.learn_groups[told])
        assert all(share - 5 < number < share + 5 for number in np.bincount(labels[told], minlength=3))
    assert np.bincount(corpus.told(1, rng) + 1)[1:].tolist() == [3, 3, 3]


def test_matching_undoes_a_renaming():
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    predicted = np.array([2, 2, 2, 0, 0, 2, 1, 1])
    np.testing.assert_array_equal(newsgroups.matched(predicted, groups, 3), [1, 2, 0])


@pytest.mark.parametrize("name", [*newsgroups.LEARNERS])
def test_every_learner_finds_the_groups(corpus, name):
    rng = np.random.default_rng(1)
    order, labels = rng.permutation(len(corpus.learn_groups)), corpus.told(30, rng)
    learned = newsgroups.LEARNERS[name](corpus, labels, order, 0)
    found = newsgroups.outcome(learned, corpus)
    assert found["matched"] > 0.85 and found["nmi"] > 0.5 and found["ari"] > 0.5
    if name == newsgroups_page.KMEANS:
        assert found["score"] is None
    else:
        assert found["accuracy"] > 0.85 and np.log(1 / 30) - 0.5 < found["score"] < 0.0


def test_all_labels_make_the_mixture_naive_bayes(corpus):
    rng = np.random.default_rng(2)
    labels = corpus.told(100, rng)
    order = rng.permutation(len(labels))
    mine = newsgroups.stream(corpus, labels, order, 0)
    peer = newsgroups.MultinomialNB(alpha=0.1).fit(corpus.learn, labels)
    np.testing.assert_allclose(mine.model.probabilities_, np.exp(peer.feature_log_prob_), rtol=1e-6)


def test_components_are_told_by_their_words(corpus):
    order = np.arange(len(corpus.learn_groups))
    learned = newsgroups.stream(corpus, corpus.learn_groups, order, 0)
    found = newsgroups.components(learned, corpus)
    assert [one["group"] for one in found] == GROUPS
    for group, one in enumerate(found):
        assert {int(word[4:]) // 10 for word in one["words"]} == {group}
        assert one["matched"] == one["group"] and one["share"] > 0.8
    assert sum(one["documents"] for one in found) == len(corpus.judge_groups)


# Words and the page


def test_pieces_of_text():
    assert listed(["a"]) == "a" and listed(["a", "b", "c"]) == "a, b and c"
    assert percent(0.5) == "50 %" and percent(0.034) == "3.4 %" and percent(0.0) == "0 %"
    assert spread([0.1, 0.3, 0.2], 1) == "0.2 (0.1 to 0.3)" and spread([0.21, 0.22], 1) == "0.2"
    assert spread([-0.001, 0.1, 0.2], 1) == "0.1 (0.0 to 0.2)"
    assert newsgroups_page.compared(0.5, 0.4) == "10.0 points above" and newsgroups_page.compared(0.4, 0.4) == "level with"
    assert command.rounded({"a": [0.123456789, 3, True, "x"]}) == {"a": [0.123457, 3, True, "x"]}


def made_up_runs(score):
    return {"score": score, "seconds": 2.0, "megabytes": 3.2}


def made_up_sessions():
    """Figures in which one pass has three quarters of EM's gain."""
    runs = {"1": {"stream": [made_up_runs(-1.6)], "counts": [made_up_runs(-2.0)]}}
    for k, gain in (("2", 0.2), ("4", 0.4)):
        runs[k] = {
            "stream": [made_up_runs(-1.6 + 0.75 * gain)], "counts": [made_up_runs(-1.9)],
            "em": [made_up_runs(-1.6 + gain) | {"passes": 9, "converged": True, "seconds": 8.0, "megabytes": 160.0}],
            "chains of counts": [{"score": -1.6, "agreement": 0.5, "em agreement": 0.6}],
        }  # fmt: skip
    cluster = {
        "weight": 1.0, "start": [0.5, 0.5], "transitions": [[0.9, 0.1], [0.2, 0.8]], "steps": [[9, 1], [2, 8]],
        "views": [12, 8], "sessions": 5, "single": 1,
    }  # fmt: skip
    return {
        "quick": False, "sessions": 900, "views": 4000, "held_out": 100, "held_out_views": 400, "chunk": 10_000, "every": 10,
        "seeds": 1, "median_length": 2.0, "longest": 99, "single": 0.37, "bytes": 11e6, "categories": ["front", "news"],
        "runs": runs, "clusters": [cluster],
    }  # fmt: skip


def test_the_page_says_what_the_figures_of_sessions_say():
    told = page({"msnbc": made_up_sessions()})
    assert "one pass has 75 % with 2 and 75 % with 4 components; EM takes 4.0 to 4.0 times as long" in told
    assert "| 4 | -1.3000 | 2.0 | 450 | 3 | -1.2000 | 8.0 | 9 | 160 |" in told
    assert (
        "a fair choice among 4.95 with one chain and among 3.67 with 4 components; the held-out score is still rising" in told
    )
    assert "| 2 | -1.4500 | -1.9000 | -1.6000 | 0.50 | 0.60 |" in told
    assert "Without the order a page view loses 0.45 nats (with 2 components) to 0.60 (with 4)" in told
    assert "Not measured yet: `python -m examples.newsgroups`." in told


def made_up_newsgroups(stream):
    """Figures of naive Bayes at 0.5, of all others at 0.6, but of one pass."""

    def one(accuracy):
        return [{"accuracy": accuracy, "matched": 0.6, "nmi": 0.5, "ari": 0.4, "score": -8.0, "seconds": 0.5}]

    names = {"0": newsgroups.NONE, "1": newsgroups.SOME, "100": newsgroups.ALL}
    special = {newsgroups_page.STREAM: stream, newsgroups_page.NB: 0.5}
    runs = {part: {name: one(special.get(name, 0.6)) for name in learners} for part, learners in names.items()}
    runs["0"][newsgroups_page.KMEANS][0]["score"] = None
    component = {"group": "cars", "share": 0.8, "documents": 9, "weight": 0.5, "words": ["engine", "road"], "matched": "guns"}
    return {
        "quick": True, "documents": 100, "judged": 50, "words": 30, "tokens": 2000, "groups": 2, "chunk": 500, "seeds": 1,
        "told": {"0": 0, "1": 4, "100": 100}, "folds": 3, "alphas": [0.1, 1.0], "kmeans_starts": 3, "runs": runs,
        "components": [component],
    }  # fmt: skip


def test_the_page_says_what_the_figures_of_newsgroups_say():
    told = page({"newsgroups": made_up_newsgroups(0.3)})
    assert "**A quick run" in told and "Not measured yet: `python -m examples.msnbc`." in told
    assert "Without labels one pass has 60 % of the later documents in the right group, level with k-means" in told
    assert "10.0 points above naive Bayes" in told and "end 30.0 points below those that come first" in told
    assert "renamed after the fact, that stream would have 30.0 points more" in told
    assert "| cars | 80 % | 9 | 0.500 | engine, road | guns |" in told
    assert "drawn at random: 4 (1 %) of 100 documents." in told
    better = page({"newsgroups": made_up_newsgroups(0.6)})
    assert "level with those that come first." in better and "renamed after the fact" not in better


# The commands


@pytest.mark.slow
def test_commands_from_end_to_end(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(newsgroups, "QUICK", newsgroups.Scale(2, (0, 10, 100)))
    options = ["--quick", "--data", str(directory), "--out", str(tmp_path)]
    assert msnbc.main(options) == 0
    assert "Not measured yet" in (tmp_path / "counts.md").read_text()
    assert newsgroups.main(options) == 0
    told = (tmp_path / "counts.md").read_text()
    assert "Not measured yet" not in told and "nan" not in told
    for line, rule in pairwise(told.splitlines()):
        if rule.startswith("|---"):
            assert line.count(" | ") + 1 == rule.count("---")
    assert set(json.loads((tmp_path / "counts.json").read_text())) == {"msnbc", "newsgroups"}
    pictures = [tmp_path / "msnbc.png", tmp_path / "newsgroups.png"]
    for path in (*pictures, tmp_path / "counts.md"):
        path.unlink()
    assert msnbc.main(["--render", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "counts.md").read_text() == told
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


@pytest.mark.parametrize(("example", "file"), [(msnbc, "msnbc/msnbc.npz"), (newsgroups, "newsgroups20/newsgroups20.npz")])
def test_what_is_missing_is_said_in_a_sentence(example, file, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("HEADWATER_DATA", raising=False)
    for options in (["--out", str(tmp_path)], ["--data", str(tmp_path)]):
        with pytest.raises(SystemExit):
            example.main(options)
        assert f"must name a directory of data sets that has {file}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        example.main(["--render", "--out", str(tmp_path)])
    assert "no figures to render" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        example.main(["--quick", "--data", str(tmp_path)])
    assert "give another --out" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.skipif(not DIRECTORY or not Path(DIRECTORY).is_dir(), reason="HEADWATER_DATA names no directory")
@pytest.mark.parametrize(("example", "file"), [(msnbc, "msnbc/msnbc.npz"), (newsgroups, "newsgroups20/newsgroups20.npz")])
def test_a_small_part_of_the_real_data(example, file, tmp_path):
    if not (Path(DIRECTORY) / file).is_file():
        pytest.skip(f"HEADWATER_DATA has no {file}")
    assert example.main(["--quick", "--data", DIRECTORY, "--out", str(tmp_path)]) == 0
    assert "nan" not in (tmp_path / "counts.md").read_text()
    figures = json.loads((tmp_path / "counts.json").read_text())
    if example is msnbc:
        clusters = figures["msnbc"]["clusters"]
        assert len(clusters) == msnbc.QUICK.shown
        np.testing.assert_allclose(sum(one["weight"] for one in clusters), 1.0, rtol=1e-3)
    else:
        runs = figures["newsgroups"]["runs"]
        assert runs["100"][newsgroups_page.STREAM][0]["accuracy"] > 0.5
        assert runs["0"][newsgroups_page.STREAM][0]["matched"] > 0.2

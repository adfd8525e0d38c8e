"""The page of rates of convergence: its law of documents, its learners, its figures, and a tiny run."""

from types import SimpleNamespace

import numpy as np
import pytest
from page_checks import complete, page_of

pytest.importorskip("papers", reason="run from the root of the repository")

from pages.__main__ import main
from papers import rates as code


def test_the_law_is_that_of_all_documents():
    weights, topics, start, rng = code.truth_of(3)
    law = code.log_law(weights, topics)
    assert np.exp(law).sum() == pytest.approx(1.0) and len(law) == 462
    drawn = np.stack([rng.multinomial(code.LENGTH, topics[k]) for k in rng.choice(code.TOPICS, p=weights, size=20_000)])
    np.testing.assert_allclose(np.exp(law) @ code.DOCUMENTS, drawn.mean(axis=0), atol=0.05)
    same = SimpleNamespace(weights_=weights, probabilities_=topics)
    assert code.divergence(same, law) == pytest.approx(0.0, abs=1e-12)
    assert code.divergence(SimpleNamespace(weights_=np.array([0.5, 0.5]), probabilities_=start), law) > 1e-3


def test_auto_and_refined_algorithms_are_near_maximum_likelihood_from_a_rough_start():
    found = code.documents_set(1, code.Scale(1, (4000,), 1, (100,)))["gaps"]
    least = found[code.LIKELIEST][0]
    assert found["auto"][0] < 1.2 * least and found["boem, refined"][0] < 1.2 * least < 0.5 * found["boem"][0]


def test_the_page_says_what_the_figures_say():
    one = {"rows": [100, 1000], "gaps": {"auto": [1e-3, 1e-4], "boem": [4e-3, 2e-3], code.LIKELIEST: [1e-3, 1e-4]}}
    loss = {"case": "close", "rows": 1000, "lines": {f"{a:g}": {"mean": 1.5, "error": 0.25} for a in code.EXPONENTS}}
    text = complete(page_of(code.PAGE, documents={"0": one, "1": one}, averages={"close/1000": loss}))
    assert "| auto | 100.0 ± 0.0 | 10.0 ± 0.0 | -1.00 ± 0.00 |" in text and "The least at the end has `auto`" in text
    assert "| n^0.25 | 1.04 | 1.50 ± 0.25 |" in text and "| n^1 | 1.33 |" in text


@pytest.mark.slow
def test_a_quick_run(tmp_path):
    assert main(["rates", "--quick", "--out", str(tmp_path)]) == 0
    assert "Not measured" not in (tmp_path / "rates.md").read_text()

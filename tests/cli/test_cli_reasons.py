"""headwater score --explain where rows have no columns to compare: words, items, steps."""

import csv

import numpy as np
import pytest

from headwater.cli import main

RNG = np.random.default_rng(0)
WORDS = ("tea", "milk", "bread", "soap", "jam", "ham")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("reasons")
    documents = [" ".join(RNG.choice(WORDS[:3] if at % 2 else WORDS[3:], size=8)) for at in range(200)]
    (place / "docs.txt").write_text("\n".join([*documents, "tea tea tea ham ham ham soap soap"]) + "\n")
    sequences = [" ".join(RNG.choice(list("ab"), size=10)) if at % 2 else "a b c " * 4 for at in range(200)]
    (place / "a.seq").write_text("\n".join([*sequences, "c b a c b a c b a c b a"]) + "\n")
    rows = RNG.normal(size=(400, 2)) + 6.0 * (np.arange(400)[:, None] // 50 % 2)
    rows[300] = [3.0, 20.0]
    np.savetxt(place / "h.csv", rows, delimiter=",", header="a,b", comments="")
    return place


@pytest.mark.parametrize(
    ("word", "file", "odd", "reasons"),
    [
        ("multinomial", "docs.txt", "200", {"tea", "ham", "soap"}),
        ("markov", "a.seq", "200", {"a → c", "c → b", "starts with c"}),
        ("hmm", "h.csv", "300", {"b"}),
    ],
)
def test_odd_rows_come_with_reasons(word, file, odd, reasons, place, capsys):
    model, data = str(place / f"{word}.hw"), str(place / file)
    assert main(["fit", word, data, "-k", "2", "--json", "-o", model]) == 0
    capsys.readouterr()
    assert main(["score", model, data, "--rate", "0.02", "--against", "data", "--explain"]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    found = {line.get("row", line.get("sequence")): line for line in lines}[odd]
    assert found["odd"] == "true" and found["reason1"] in reasons and float(found["reason1_value"]) >= 0.0
    assert all(not line["reason1"] for line in lines if line["odd"] == "false")

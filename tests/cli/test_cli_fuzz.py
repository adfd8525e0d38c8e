"""Random commands: each ends with an exit code, at most one sentence, and no half-written file."""

import os
import random

import numpy as np
import pytest

from headwater.cli import main
from headwater.registry import MODELS

FITTED = {
    "gaussian": ["z.npy", "-k", "2"], "lda": ["t.txt", "-k", "2"], "markov": ["s.seq", "-k", "2"], "hmm": ["z.npy", "-k", "2"],
    "regression": ["z.npy", "--target", "x1"], "arrival": ["c.npy"], "nmf": ["i.npy", "-k", "2"],
}  # fmt: skip
FILES = [*(f"{word}.hw" for word in FITTED), "junk.hw", "none.hw"]
DATA = [
    "a.csv",
    "t.txt",
    "s.seq",
    "bad.csv",
    "one.csv",
    "z.npy",
    "i.npy",
    "c.npy",
    "empty.npy",
    "flat.npy",
    "none.csv",
    ".",
    "*.csv",
    "gaussian.hw",
]
READING = [
    "--exclude=id",
    "--columns=a,b",
    "--columns=x0",
    "--target=a",
    "--target=x0",
    "--key=id",
    "--key=x0",
    "--label=c2",
    "--weight=x0",
    "--weight=a",
    "--categories=one-hot",
    "--categories=drop",
    "--missing=drop",
    "--missing=keep",
    "--chunk-rows=7",
    "--shuffle=20",
    "--format=csv",
    "--format=text",
    "--format=sequences",
    "--text=id",
    "--vocabulary=open",
    "--vocabulary=16",
]
FIT = [
    "-k1",
    "-k2",
    "-k5",
    "-k100",
    "--passes=auto",
    "--passes=2",
    "--algorithm=em",
    "--algorithm=online-em",
    "--algorithm=vb",
    "--half-life=50",
    "--set=warm_up=10",
    "--set=covariance_type=tied",
    "--set=n_symbols=4",
    "--set=tol=abc",
    "--set=parts=2",
    "--json",
    "--no-raw-rows",
    "--checkpoint=ck",
    "-ox.hw",
]
SCORE = [
    "--explain",
    "--rate=0.1",
    "--rate=0",
    "--rate=1",
    "--rank",
    "--probabilities",
    "--threshold=-3",
    "--keep=id",
    "--keep=x0",
    "--only-odd",
    "--json",
    "-oout.csv",
    "-oout.parquet",
    "-oout.jsonl",
    "--against=data",
    "--against=learned",
]


def command(chance):
    def some(options, most=4):
        return chance.sample(options, chance.randint(0, most))

    file, data = chance.choice(FILES), chance.choice(DATA)
    return chance.choice(
        [
            lambda: ["fit", chance.choice([*MODELS, *FILES[:3]]), data, *some(FIT + READING)],
            lambda: ["score", file, data, *some(SCORE + READING)],
            lambda: ["label", file, data, "--column=id", *some(["-oo.hw", "--json", *READING])],
            lambda: ["impute", file, data, *some(["--method=mode", "--method=sample", "--keep=id", "-oo.csv", *READING])],
            lambda: ["predict", file, data, "--column=a", *some(["--level=0.5", "--classes=0,1", "--keep=id", *READING])],
            lambda: ["sample", file, *some(["-n3", "--length=4", "z.npy", "-n0"], 1)],
            lambda: ["convert", data, *some(["-oo.csv", "-oo.npz", "-oo.parquet", "-oo.npy", *READING], 3)],
            lambda: ["merge", file, chance.choice(FILES)],
            lambda: ["inspect", file],
        ]
    )()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_any_command_ends_well_or_with_one_sentence(seed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = "".join(f"{x:.3f},{y:.3f},r{at % 5}\n" for at, (x, y) in enumerate(rng.normal(size=(60, 2))))
    texts = {"a.csv": "a,b,id\n" + rows, "bad.csv": "a,b\n1,x\n2\n,,,\n", "one.csv": "a,b\n1,2\n"}
    texts |= {"t.txt": "the cat sat\non the mat\n\nthe dog ran far away\n" * 10, "s.seq": "a b a c\nb b\nc\n" * 10}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    arrays = {"z": rng.normal(size=(40, 3)), "i": rng.integers(0, 4, size=(40, 3)), "c": rng.normal(size=(40, 3)) + 1j}
    for name, array in {**arrays, "empty": np.zeros((0, 3)), "flat": np.zeros(5)}.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "junk.hw").write_bytes(rng.bytes(500))
    for word, arguments in FITTED.items():
        assert main(["fit", word, *arguments, "-o", f"{word}.hw"]) == 0
    chance = random.Random(seed)
    codes = set()
    for _ in range(400):
        capsys.readouterr()
        arguments = command(chance)
        code = main(arguments)
        err = [line for line in capsys.readouterr().err.splitlines() if "note:" not in line and "compiling" not in line]
        assert code in (0, 1, 2) and len(err) == (code != 0), (arguments, code, err)
        assert "unexpected" not in "".join(err), (arguments, err)
        assert not [name for name in os.listdir() if name.endswith(".part")], arguments
        codes.add(code)
    assert codes == {0, 1, 2}

"""Files that continue one model can be merged, and the rows that they share count once."""

import numpy as np

import headwater as hw
from headwater.cli import main


def test_models_that_go_on_from_one_file_count_its_rows_once(tmp_path, capsys):
    rng = np.random.default_rng(0)
    files = {name: str(tmp_path / f"{name}.hw") for name in ("base", "a", "b", "ab", "on")}
    for name, rows in (("base", 900), ("a", 600), ("b", 700)):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(rows, 2)) + 5.0 * rng.integers(2, size=(rows, 1)))
    data = {name: str(tmp_path / f"{name}.npy") for name in ("base", "a", "b")}
    assert main(["fit", "gaussian", data["base"], "-k", "2", "-o", files["base"], "--set", "warm_up=200"]) == 0
    for name in ("a", "b"):
        assert main(["fit", files["base"], data[name], "-o", files[name]]) == 0
        assert hw.load(files[name]).n_samples_seen_ == 900 + len(np.load(data[name]))
    assert main(["merge", files["a"], files["b"], "-o", files["ab"]]) == 0
    assert hw.load(files["ab"]).n_samples_seen_ == 900 + 600 + 700
    capsys.readouterr()
    assert main(["merge", files["base"], files["a"]]) == 1
    assert "would count twice" in capsys.readouterr().err
    assert main(["fit", files["a"], data["b"], "-o", files["a"]]) == 0  # a file that replaces itself is no branch
    assert hw.load(files["a"]).n_samples_seen_ == 900 + 600 + 700

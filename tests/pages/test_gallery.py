"""The gallery: every example compiles, uses only public names, and runs (slow)."""

import ast
import runpy
from pathlib import Path

import pytest

import headwater as hw
from headwater import plotting

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gallery"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))
GROUPS = (
    "scikit_learn", "river", "hmmlearn", "gensim", "cytometry", "sensors", "sessions", "regimes", "audio", "arrays_of_sensors",
    "sorted_files", "many_machines",
)  # fmt: skip
PUBLIC_MODULES = {"headwater", "headwater.plotting", "headwater.datasets"}
OTHERS = {
    "itertools",
    "pathlib",
    "tempfile",
    "matplotlib",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
}  # a user of [plot] and pandas
every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def test_every_group_of_users_has_an_example():
    assert {f"plot_{group}" for group in GROUPS} <= {path.stem for path in EXAMPLES}
    assert (FOLDER / "GALLERY_HEADER.rst").exists()


@every_example
def test_an_example_has_a_title_and_names_public_things_alone(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    title, underline, *_ = ast.get_docstring(tree).splitlines()
    assert set(underline) == {"="} and len(underline) == len(title)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {name.name.split(".")[0] for name in node.names} <= OTHERS | {"headwater"}
        elif isinstance(node, ast.ImportFrom):
            assert node.module in PUBLIC_MODULES or node.module.split(".")[0] in OTHERS
            assert node.module != "headwater" or {name.name for name in node.names} <= {"plotting", "datasets"}
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_"), node.attr
            if isinstance(node.value, ast.Name) and node.value.id == "hw":
                assert node.attr in hw.__all__
            elif isinstance(node.value, ast.Name) and node.value.id == "plotting":
                assert node.attr in plotting.__all__


@pytest.mark.slow
@every_example
def test_an_example_runs_and_draws(path, tmp_path, monkeypatch, capsys):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.close("all")
    runpy.run_path(str(path))
    assert pyplot.get_fignums()
    assert capsys.readouterr().err == "" and not list(tmp_path.iterdir())
    pyplot.close("all")

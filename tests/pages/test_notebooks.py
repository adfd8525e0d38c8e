"""The notebooks of the examples run from beginning to end, and are stored without outputs."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
IMAGE, PAGE = "image/png", "text/html"


def test_there_are_three_and_none_has_outputs():
    nbformat = pytest.importorskip("nbformat")
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert all(not cell.outputs and cell.execution_count is None for cell in cells)
        assert notebook.cells[0].source.startswith("# ")


@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    noted = [output for output in shown if "compiling its kernels" not in output.get("text", "")]  # as on a new machine
    assert not [output for output in noted if output.output_type == "error" or output.get("name") == "stderr"]
    kinds = [kind for output in shown for kind in output.get("data", {})]
    assert IMAGE in kinds and PAGE in kinds
    pages = "".join(output["data"][PAGE] for output in shown if PAGE in output.get("data", {}))
    assert "<svg" in pages  # the model with its picture
    assert ("<progress" in pages) == (path.stem == "odd-rows")

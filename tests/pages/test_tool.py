"""The page tool: figures are stored set by set, pages are rendered from templates and figures, and runs are recorded."""

import json
import re
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

pytest.importorskip("pages", reason="run from the root of the repository")

from pages import __main__ as command
from pages import machine, page, render, words
from pages.page import NAMES, Page, find
from pages.results import Results, plain


@dataclass(frozen=True)
class Scale:
    rows: int = 100


TEMPLATE = """# Squares

{% if squares %}
<!-- table: squares -->

| number | square |
|---|---|
{% for one in squares %}
| {{ one.number }} | {{ one.square | f(".2f") }} |
{% endfor %}

<!-- end of table: squares -->

![Squares](squares.png)
{% else %}
Not measured.
{% endif %}
{% if roots %}
The largest root is {{ roots | f("g") }}.
{% endif %}
"""


@pytest.fixture
def squares(tmp_path, monkeypatch):
    """Return a page with two parts of two sets each, and a list of the measured sets, in order."""
    made = []

    def part(name):
        def measure(scale, data):
            for number in (2.0, 3.0):
                yield f"{number:g}", lambda number=number: made.append(f"{name}/{number:g}") or {
                    "number": number, "square": number**2, "noise": float("nan"), "rows": scale.rows,
                }  # fmt: skip

        return measure

    one = Page(
        name="squares", room="papers", parts={"squares": part("squares"), "roots": part("roots")}, full=Scale(), quick=Scale(3),
        minutes=1, seeds="none", values={"squares": lambda results: results.of("squares"),
                                         "roots": lambda results: max(one["number"] for one in results.of("roots"))},
        pictures={"squares": lambda path, results: path.write_text(str(len(results.of("squares"))))},
    )  # fmt: skip
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "squares.md").write_text(TEMPLATE)
    (tmp_path / "docs" / "papers").mkdir(parents=True)
    for module in (page, render):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(command, "NAMES", {"squares": "papers"})
    monkeypatch.setattr(command, "find", lambda name: one)
    return one, made


def stored(tmp_path):
    return json.loads((tmp_path / "docs" / "papers" / "squares.json").read_text())


def test_a_run_stores_figures_and_what_they_were_taken_on(squares, tmp_path):
    assert command.main(["squares"]) == 0
    assert squares[1] == ["squares/2", "squares/3", "roots/2", "roots/3"]
    found = stored(tmp_path)
    assert found["pending"] == [] and found["scale"] == {"rows": 100}
    assert found["figures"]["squares"]["3"] == {"number": 3.0, "square": 9.0, "noise": None, "rows": 100}
    run = found["runs"]["roots"]
    assert run["commit"] == machine.revision() and run["command"] == "python -m pages squares" and run["seeds"] == "none"
    assert {"cpu", "cores", "python", "numpy", "headwater"} <= run["machine"].keys() and run["seconds"] >= 0.0
    told = (tmp_path / "docs" / "papers" / "squares.md").read_text()
    assert told.startswith("# Squares\n\n<!-- Written by python -m pages squares from papers/squares.md")
    assert "| 3.0 | 9.00 |" in told and "The largest root is 3." in told
    assert told.splitlines()[-1].startswith(f"Made by `python -m pages squares`. Figures: commit {machine.revision()}, ")
    assert told.endswith(" Seeds: none.\n")
    assert (tmp_path / "docs" / "papers" / "squares.png").read_text() == "2"


def test_an_interrupted_run_goes_on_and_a_part_is_measured_again(squares, tmp_path):
    one, made = squares
    results = replace(one.results(), figures={"squares": {"2": {"number": 2.0, "square": 4.0}}}, pending=["squares", "roots"])
    results.write()
    assert "Not measured." in render.text(one, results) and "**Not complete yet**: squares and roots." in render.text(
        one, results
    )
    assert command.main(["squares"]) == 0
    assert made == ["squares/3", "roots/2", "roots/3"]
    made.clear()
    assert command.main(["squares", "--only", "roots"]) == 0
    assert made == ["roots/2", "roots/3"] and stored(tmp_path)["figures"]["squares"]["2"]["square"] == 4.0
    made.clear()
    assert command.main(["papers", "--fresh"]) == 0
    assert len(made) == 4


def test_rendering_and_checking_need_only_the_figures(squares, tmp_path, capsys):
    with pytest.raises(SystemExit):
        command.main(["squares", "--render"])
    assert "no figures to render" in capsys.readouterr().err
    command.main(["squares"])
    path = tmp_path / "docs" / "papers" / "squares.md"
    before = path.read_text()
    squares[1].clear()
    assert command.main(["squares", "--check"]) == 0
    path.write_text(before.replace("9.00", "9.01"))
    with pytest.raises(SystemExit):
        command.main(["squares", "--check"])
    assert "is not what papers/squares.md and its figures say" in capsys.readouterr().err
    assert command.main(["squares", "--render"]) == 0 and squares[1] == [] and path.read_text() == before


def test_a_smaller_run_is_no_result(squares, tmp_path, capsys):
    for options in (["--quick"], ["--set", "rows=7"]):
        with pytest.raises(SystemExit):
            command.main(["squares", *options])
        assert "give another --out" in capsys.readouterr().err
    assert command.main(["squares", "--quick", "--set", "rows=7", "--out", str(tmp_path / "other")]) == 0
    assert json.loads((tmp_path / "other" / "squares.json").read_text())["scale"] == {"rows": 7}
    assert "**A reduced run" in (tmp_path / "other" / "squares.md").read_text()
    with pytest.raises(SystemExit):
        command.main(["squares", "--quick", "--out", str(tmp_path / "other")])
    assert "a run of another size" in capsys.readouterr().err


def test_what_is_not_known_is_said_in_a_sentence(squares, tmp_path, capsys):
    for options, words_said in (
        (["cubes"], "'cubes' is no page: choose from squares"),
        (["squares", "--only", "cubes"], "'cubes' is no part of squares: choose from squares, roots"),
        (["squares", "--set", "columns=3"], "'columns' is no size of this page: choose from rows"),
        (["squares", "--set", "rows=many"], "rows is 100: 'many' is not of that kind"),
    ):
        with pytest.raises(SystemExit):
            command.main(options)
        assert words_said in capsys.readouterr().err


def test_a_page_that_needs_a_data_set_is_not_measured_without(squares, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "find", lambda name: replace(squares[0], needs=("numbers/numbers.csv",)))
    with pytest.raises(SystemExit):
        command.main(["squares", "--data", str(tmp_path)])
    assert (
        "HEADWATER_DATA, or --data, must name a directory of data sets that has numbers/numbers.csv" in capsys.readouterr().err
    )
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "numbers.csv").touch()
    assert command.main(["squares", "--data", str(tmp_path)]) == 0 and len(squares[1]) == 4


def test_tables_are_put_into_other_pages(squares, tmp_path):
    other = "<!-- table: other -->\nkept\n<!-- end of table: other -->\n"
    beside = tmp_path / "docs" / "scale.md"
    beside.write_text(f"Text.\n<!-- table: squares -->\nold\n<!-- end of table: squares -->\n{other}")
    command.main(["squares"])
    after = beside.read_text()
    assert "old" not in after and "| 2.0 | 4.00 |" in after and other in after
    command.main(["squares", "--render"])
    assert beside.read_text() == after


def test_the_state_of_pages_is_listed(squares, capsys):
    assert command.main([]) == 0
    assert "no figures" in capsys.readouterr().out
    command.main(["squares"])
    capsys.readouterr()
    command.main([])
    assert "0 files of the library changed since" in capsys.readouterr().out
    assert machine.changed_files("no-such-commit", "src") is None


def test_a_plus_marks_changed_code_and_not_changed_pages(monkeypatch):
    said = {"describe": "abc1234", "status": " M src/headwater/core/loop.py"}
    asked = []
    monkeypatch.setattr(machine, "_git", lambda *arguments: asked.append(arguments) or said[arguments[0]])
    assert machine.revision() == "abc1234+" and ":(exclude)docs" in asked[-1]
    said["status"] = ""
    assert machine.revision() == "abc1234"
    said["describe"] = None
    assert machine.revision() == "no commit"


def test_pieces_of_text():
    assert words.listed(["a"]) == "a" and words.listed(["a", "b", "c"]) == "a, b and c" and words.listed([]) == ""
    assert words.percent(0.034) == "3 %" and words.fine_percent(0.034) == "3.4 %" and words.fine_percent(0.0) == "0 %"
    assert words.fine_percent(0.0996) == "10 %" and words.fine_percent(0.099) == "9.9 %"
    assert words.median_and_range([0.1, 0.3, 0.2], 1) == "0.2 (0.1 to 0.3)" and words.median_and_range([0.21, 0.22], 1) == "0.2"
    assert words.median_and_range([-0.001, 0.1, 0.2], 1) == "0.1 (0.0 to 0.2)"
    assert words.mean_and_range([2.0]) == "2.0" and words.mean_and_range([1.0, 2.0]) == "1.5 (1.0 to 2.0)"
    assert words.number_table(["a", "b"], [["x", "1"]]) == "| a | b |\n|---|---:|\n| x | 1 |"
    assert plain({"a": (0.123456789, 3, True, "x"), 2: float("nan")}) == {"a": [0.1234568, 3, True, "x"], "2": None}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_docs_is_what_its_template_and_figures_say(name):
    one = find(name)
    told = render.text(one, one.results())
    assert told == (one.out / f"{name}.md").read_text(encoding="utf-8")
    for picture in render.PICTURE.findall(told):
        assert picture in one.pictures and (one.out / f"{picture}.png").is_file()
    for line, rule in pairwise(told.splitlines()):
        if rule.startswith("|---"):
            assert line.count("|") == rule.count("|")


def test_tables_in_other_pages_are_those_of_their_page():
    tables = {found[1]: found[0] for path in (page.DOCS / "benchmarks").glob("*.md")
              for found in render.TABLE.finditer(path.read_text(encoding="utf-8"))}  # fmt: skip
    others = [path for path in page.DOCS.rglob("*.md") if path.parent.name != "benchmarks"]
    copies = [found for path in others for found in render.TABLE.finditer(path.read_text(encoding="utf-8"))]
    assert len(copies) >= 12
    for found in copies:
        assert found[0] == tables[found[1]], f"python -m pages --render: the table {found[1]} is not that of its page"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_nothing_says_so(name):
    one = find(name)
    results = Results(one.out / "nowhere.json", plain({}), {}, [[*one.parts][-1]], ["a data set"])
    told = render.text(one, results)
    assert "Not measured." in told and "**A reduced run" in told and "Nothing is measured yet." in told
    assert f"**Not complete yet**: {[*one.parts][-1]}." in told and "left out**: a data set." in told
    assert not render.PICTURE.findall(told)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_quick_run_of_every_page(name, tmp_path):
    if NAMES[name] == "benchmarks":
        pytest.importorskip("distributed")
    data = command.data_directory()
    if any(data is None or not (data / file).is_file() for file in find(name).needs):
        pytest.skip(f"HEADWATER_DATA has no {find(name).needs}")
    assert command.main([name, "--quick", "--out", str(tmp_path)]) == 0
    told = (tmp_path / f"{name}.md").read_text()
    assert not re.search(r"\bnan\b", told)
    for picture in render.PICTURE.findall(told):
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")

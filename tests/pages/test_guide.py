"""The code on the pages of the site runs, and prints what the pages show."""

import re
from contextlib import chdir
from pathlib import Path

import pytest

pytest.importorskip("examples", reason="run from the root of the repository")

from examples import guide
from headwater.cli.app import COMMANDS
from headwater.kernels._jit import COMPILING

WALK = guide.WALK.read_text(encoding="utf-8")
# Pages that start processes, draw reports, or compile kernels that no other default test needs.
SLOW = ("README.md", "index.md", "command-line.md", "clusters.md", "factors.md", "arrivals.md", "topics.md", "algorithms.md")
SLOW += (
    "refinement.md",
    "promises.md",
    "live.md",
    "live-afternoon.md",
    "gensim.md",
    "river.md",
    "chains.md",
    "hmmlearn.md",
    "regressions.md",
)


def list_answers(page):
    """Return the output of each block of Python and each command of a page, line by line."""
    found = []
    for block in guide.find_blocks(page):
        if block["kind"] == "python":
            found.append((block["code"], (block["output"] or "").splitlines()[2:-1]))
            continue
        for line in block["code"].splitlines():
            if line.startswith("$ "):
                found.append((line, []))
            else:
                found[-1][1].append(line)
    return found


def forms_of(lines):
    """Return the lines of an output without numbers and widths of columns."""
    return [" ".join(re.sub(r"[-\d.,±+─]+", "#", line).split()) for line in lines]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(guide.ROOT)), marks=[pytest.mark.slow] * (page.name in SLOW))
        for page in guide.find_pages()
    ],
)
def test_the_code_of_a_page_runs_and_says_what_the_page_says(page):
    # A command may list components or odd rows in another order, and more or fewer of them, so only forms are compared.
    compared = (lambda said: sorted(set(forms_of(said)))) if page == guide.WALK else forms_of
    now, then = list_answers(guide.renew_page(page)), list_answers(page.read_text(encoding="utf-8"))
    assert [(code, compared(said)) for code, said in now] == [(code, compared(said)) for code, said in then]


def test_the_walk_goes_from_install_to_report():
    used = {found[1] for command in guide.list_commands(WALK) for found in re.finditer(r"headwater (\w+)", command)}
    assert {"fit", "inspect", "score", "report", "merge", "convert", "demo"} <= used
    assert used <= {module.__name__.rsplit(".", 1)[1] for module in COMMANDS}
    assert [line for line in WALK.splitlines() if line.startswith("## ")][:2] == ["## Install", "## The data"]
    assert "/tmp" not in WALK and "/home" not in WALK


def test_what_code_and_commands_say_is_written_beneath_them():
    page = (
        "a\n```console\n$ one\nold\n$ two\n```\nb\n```python\nx = 2\nprint(x)\n```\n\n```output\nold\n```\n"
        "% not run: no such place\n```python\nprint(x + 1)\n```\n```python\nprint(x + 2)\n```\n"
    )
    expected = page.replace("$ one\nold\n$ two\n", "$ one\nsaid one\n$ two\nsaid two\n").replace("output\nold", "output\n2")
    assert guide.write_answers(page, guide.start_session("a page"), lambda command: f"said {command}\n") == expected


def test_a_command_that_fails_ends_the_run(tmp_path):
    with pytest.raises(SystemExit, match="exit 3 ended with code 3"):
        guide.start_shell(str(tmp_path))("exit 3")


def test_that_kernels_are_compiled_is_not_part_of_an_answer(tmp_path):
    assert guide.start_shell(str(tmp_path))(f"echo one; echo '{COMPILING}' >&2; echo two") == "one\ntwo\n"


def test_every_page_of_the_guide_shows_code():
    shown = set(guide.find_pages())
    pages = {*guide.DOCS.glob("guide/*.md"), *guide.DOCS.glob("migration/*.md"), guide.DOCS / "get-started.md"}
    assert {page for page in pages - shown if page.name != "index.md"} == set()


def test_code_that_is_left_out_says_why():
    for page in guide.find_pages():
        for found in guide.BLOCK.finditer(page.read_text(encoding="utf-8")):
            assert found["skip"] is None or len(found["skip"]) > len("% not run: \n")


def test_a_page_leaves_nothing_behind(tmp_path):
    with chdir(tmp_path):
        page = Path("page.md")
        page.write_text("```python\nopen('left', 'w').close()\n```\n", encoding="utf-8")
        guide.renew_page(page.resolve())
        assert [path.name for path in tmp_path.iterdir()] == ["page.md"]

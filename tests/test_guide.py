import re

import pytest

from examples import guide
from headwater.cli.app import COMMANDS

PAGE = guide.PAGE.read_text(encoding="utf-8")


def test_the_page_goes_from_install_to_report():
    used = {found[1] for command in guide.commands(PAGE) for found in re.finditer(r"headwater (\w+)", command)}
    assert {"fit", "inspect", "score", "report", "merge", "convert", "demo"} <= used
    assert used <= {module.__name__.rsplit(".", 1)[1] for module in COMMANDS}
    assert [line for line in PAGE.splitlines() if line.startswith("## ")][:2] == ["## Install", "## The data"]
    assert "/tmp" not in PAGE and "/home" not in PAGE


def test_what_commands_say_is_written_beneath_them():
    page = "a\n```console\n$ one\nold\n$ two\n```\nb\n"
    assert guide.written_anew(page, lambda command: (0, f"said {command}\n")) == (
        "a\n```console\n$ one\nsaid one\n$ two\nsaid two\n```\nb\n"
    )
    with pytest.raises(SystemExit, match="one ended with code 3"):
        guide.written_anew(page, lambda command: (3, ""))


@pytest.mark.slow
def test_every_command_of_the_page_runs(tmp_path):
    anew = guide.written_anew(PAGE, guide.shell(str(tmp_path)))

    def shape(page):  # the same words; numbers may differ in their last digits from machine to machine
        return [re.sub(r"[-\d.,e±+ ]+", " ", line) for line in page.splitlines() if "|" not in line and "─" not in line]

    assert shape(anew) == shape(PAGE)

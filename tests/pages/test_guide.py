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


def said(page):
    """What each command of a page said, line by line."""
    found = []
    for block in guide.BLOCK.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line, []))
            else:
                found[-1][1].append(line)
    return found


def opening(lines):
    """How an answer begins, without numbers: what follows is about what was learned, which hangs on rounding."""
    return [re.sub(r"[-\d.,±+]+", "#", line) for line in lines[:1]]


@pytest.mark.slow
def test_every_command_of_the_page_runs(tmp_path):
    """Words and order of an answer may change from machine to machine: another contest is won, another row is the oddest."""
    anew, page = said(guide.written_anew(PAGE, guide.shell(str(tmp_path)))), said(PAGE)
    assert [(command, opening(lines)) for command, lines in anew] == [(command, opening(lines)) for command, lines in page]

"""Files that grow: each line once, whatever happens to their names."""

import json
import os

import pytest
from live.live_models import write_lines

from headwater.live.sources.followed_files import FollowedFiles
from headwater.live.text_events import LINE_BYTES


def numbers(source):
    """All that a source has now, and the position after it."""
    found, place = [], None
    while events := source.fetch(0.0):
        found += [event.fields.get("n", event.problem) for event in events]
        place = events[-1].place or place
    return found, place


def lines(*values):
    return [{"n": value} for value in values]


def resumed(path, place):
    source = FollowedFiles(path, follow=True)
    source.seek(dict([place]))
    return source


def test_appended_lines_come_once_and_half_lines_wait(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", lines(1, 2))
    source = FollowedFiles(tmp_path, follow=True)
    assert numbers(source)[0] == [1, 2]
    with path.open("a") as file:
        file.write('{"n": 3}\n{"n"')
    assert numbers(source)[0] == [3]
    with path.open("a") as file:
        file.write(": 4}\n")
    write_lines(tmp_path / "b.jsonl", lines(5))
    assert numbers(source)[0] == [4, 5]
    assert numbers(source)[0] == []


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("name", ["a.jsonl.1", "a-old.jsonl"])
def test_a_rotated_file_is_read_to_its_end_and_not_again(tmp_path, restart, name):
    path = write_lines(tmp_path / "a.jsonl", lines(1, 2))
    source = FollowedFiles(tmp_path, follow=True)
    found, place = numbers(source)
    assert found == [1, 2]
    write_lines(path, lines(3), mode="a")
    path.rename(tmp_path / name)
    write_lines(tmp_path / "a.jsonl", lines(4, 5, 6))
    source = resumed(tmp_path, place) if restart else source
    found, place = numbers(source)
    assert sorted(found) == [3, 4, 5, 6]
    assert numbers(resumed(tmp_path, place))[0] == []


def test_a_file_that_was_copied_and_emptied_begins_anew(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", lines(1, 2, 3))
    source = FollowedFiles(tmp_path, follow=True)
    numbers(source)
    (tmp_path / "a.jsonl.1").write_bytes(path.read_bytes())
    os.truncate(path, 0)
    write_lines(path, lines(9))
    assert numbers(source)[0] == [9]


def test_a_file_that_is_replaced_by_another_begins_anew(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", lines(1, 2, 3))
    source = FollowedFiles(tmp_path, follow=True)
    _, place = numbers(source)
    path.unlink()
    write_lines(path, lines(7, 8, 9, 10))
    assert numbers(resumed(tmp_path, place))[0] == [7, 8, 9, 10]


def test_positions_lie_between_lines_of_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,m\n1,x\n2,y\n")
    source = FollowedFiles(path, follow=True)
    found, place = numbers(source)
    assert found == ["1", "2"]
    with path.open("a") as file:
        file.write("3,z\n4\n")
    assert numbers(resumed(path, place))[0] == ["3", "the line has 1 values, and the header names 2"]


def test_files_that_do_not_grow_end_with_their_last_line(tmp_path):
    (tmp_path / "a.csv").write_text('n;m\n1;"a;b"\n\n2;c')
    source = FollowedFiles(tmp_path / "a.csv", follow=False)
    found = []
    while (events := source.fetch(0.0)) is not None:
        found += [event.fields for event in events]
    assert found == [{"n": "1", "m": "a;b"}, {"n": "2", "m": "c"}]


@pytest.mark.parametrize("line", ["[1]", "{", '{"n": NaN}', "3", "[" * 100_000, '{"n": ' + "1" * 5000 + "}", "\udcff"])
def test_lines_that_are_no_objects_are_refused_one_by_one(tmp_path, line):
    data = b"\n".join([b'{"n": 1}', line.encode(errors="surrogateescape"), b'{"n": 2}', b""])
    (tmp_path / "a.jsonl").write_bytes(data)
    found, _ = numbers(FollowedFiles(tmp_path, follow=True))
    assert found[0] == 1 and found[-1] == 2 and len(found) == 3 and isinstance(found[1], str)


def test_a_line_without_an_end_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"n": 1}\n' + b"x" * (3 * LINE_BYTES) + b"\n" + json.dumps({"n": 2}).encode() + b"\n")
    found, _ = numbers(FollowedFiles(tmp_path, follow=True))
    assert found[0] == 1 and found[-1] == 2 and all(isinstance(one, str) for one in found[1:-1])


def test_positions_that_make_no_sense_are_refused(tmp_path):
    for place in ([1], {"a": 3}, {"a": [1, 2, 3]}, {"a": ["1", 2, 3, "4"]}):
        with pytest.raises(ValueError, match="position"):
            FollowedFiles(tmp_path, follow=True).seek({"files": place})

import gzip
import json
import re

import numpy as np
import pytest

from pages.page import NAMES, data_directory, find
from papers.data.__main__ import main
from papers.data.digest import SETS, compare, digest

KNOWN = json.loads(SETS.read_text(encoding="utf-8"))
README = SETS.with_name("README.md").read_text(encoding="utf-8")


def test_every_set_that_a_page_needs_is_described():
    needed = {file for name in NAMES for file in find(name).needs}
    assert needed and needed <= set(KNOWN)


def test_the_page_of_data_sets_has_the_digests_that_are_compared():
    told = dict(re.findall(r"^- file: `(.*?)`, SHA-256 of what it holds `(.*?)`$", README, re.MULTILINE))
    assert told == KNOWN
    for part in README.split("\n### ")[1:]:
        assert all(f"\n- {word}: " in part for word in ("source", "size", "holds", "made of it", "licence"))


def test_a_digest_does_not_depend_on_compression(tmp_path):
    one, other = tmp_path / "one.csv.gz", tmp_path / "other.csv.gz"
    one.write_bytes(gzip.compress(b"a,b\n1,2\n", 1))
    other.write_bytes(gzip.compress(b"a,b\n1,2\n", 9, mtime=1))
    assert one.read_bytes() != other.read_bytes() and digest(one) == digest(other)
    np.savez(tmp_path / "one.npz", b=np.arange(3), a=np.eye(2))
    np.savez_compressed(tmp_path / "other.npz", a=np.eye(2), b=np.arange(3))
    assert digest(tmp_path / "one.npz") == digest(tmp_path / "other.npz")
    np.savez(tmp_path / "third.npz", a=np.eye(2), b=np.arange(3.0))
    assert digest(tmp_path / "third.npz") != digest(tmp_path / "one.npz")


def test_files_that_differ_or_lack_are_named(tmp_path, capsys):
    (tmp_path / "abalone").mkdir()
    (tmp_path / "abalone" / "abalone.csv.gz").write_bytes(gzip.compress(b"sex,length\n"))
    assert compare(tmp_path)["abalone/abalone.csv.gz"] == "differs"
    assert main([str(tmp_path)]) == 1
    assert "missing  swimmer/swimmer.npz" in capsys.readouterr().out


@pytest.mark.data
@pytest.mark.skipif(data_directory() is None, reason="needs HEADWATER_DATA")
def test_the_data_at_hand_are_those_of_the_pages():
    assert "differs" not in compare(data_directory()).values()

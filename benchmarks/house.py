"""The shape of the code, measured: ``python -m benchmarks.house`` prints the table, ``--way`` the way of one chunk.

Chunks are followed after the warm-up, and the longest way counts. A hop is a call of a function of this package, from
``partial_fit`` down to a compiled kernel; the files on the way down are those of the functions on that stack. Comprehensions
are no calls.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

import numpy as np

import headwater
from benchmarks.files_crossed import trace
from headwater.kernels._jit import kernels

ROOT = Path(headwater.__file__).parent
MOST_PARAMETERS = 8
MOST_METHODS = 25
MOST_LINES = 400
# Participles that are nouns or verbs, too, or names of hooks that scikit-learn gives: not counted.
NOUNS = {"seed", "need", "feed", "read", "spread", "bed", "embed", "proceed", "exceed", "children", "shed", "token", "open"}


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is that of a function of the package."""
    return frame.f_code.co_filename.startswith(f"{ROOT}/") and not frame.f_code.co_name.startswith("<")


def file_of(frame: FrameType) -> str:
    """Return the file of a frame, from the package's folder."""
    return frame.f_code.co_filename.removeprefix(f"{ROOT}/")


class Way:
    """The calls of one chunk: files that were crossed, and the functions of the package that led to each kernel.

    Numba tells profilers of its calls, by frames that do not know their caller.
    """

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.stacks: set[tuple[str, ...]] = set()
        self._kernels = {(kernel.__module__.split(".")[-1], kernel.__name__) for kernel in kernels()}
        self._stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return") or not is_ours(frame):
            return
        if event == "return":
            self._stack.pop()
            return
        self.files[file_of(frame)] += 1
        self._stack.append(f"{file_of(frame)}:{frame.f_code.co_qualname}")
        if (Path(file_of(frame)).stem, frame.f_code.co_name) in self._kernels:
            self.stacks.add(tuple(self._stack))

    @property
    def hops(self) -> int:
        """Calls from `partial_fit` down to the kernel that is farthest."""
        return max(map(len, self.stacks)) - 1

    @property
    def searches(self) -> bool:
        """Whether a search was due."""
        return any("policies/search_policy.py:refine_stream" in stack for stack in self.stacks)


def follow_chunk(algorithm: str) -> Way:
    """Follow chunks of 1,000 rows of a GaussianMixture, after its warm-up, and return the longest way of one without a search.

    Some of what a stream does is due once in many batches, such as scores; a search is work of its own.
    """
    rows = np.random.default_rng(0).normal(size=(20_000, 4)) + np.repeat(10.0 * np.arange(4), 5_000)[:, None]
    np.random.default_rng(1).shuffle(rows)
    model = headwater.GaussianMixture(4, algorithm=algorithm, random_state=0)
    for chunk in np.split(rows, 20):
        model.partial_fit(chunk)
    ways = []
    for chunk in np.split(rows, 20):
        way = Way()
        sys.setprofile(way)
        try:
            model.partial_fit(chunk)
        finally:
            sys.setprofile(None)
        ways.append(way)
    return max((way for way in ways if not way.searches), key=lambda way: (way.hops, len(way.files)))


def count_files_of_fit() -> int:
    """Count the files that `headwater fit gaussian file.csv` crosses."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        np.savetxt("rows.csv", np.random.default_rng(0).normal(size=(2000, 3)), delimiter=",", header="a,b,c", comments="")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return len(trace(["fit", "gaussian", "rows.csv"]))


class Source:
    """What is counted in the sources."""

    def __init__(self) -> None:
        self.words_any = 0
        self.wide: list[str] = []
        self.wide_kernels: list[str] = []
        self.large: list[str] = []
        self.long: list[str] = []
        self.functions = 0
        self.participles: list[str] = []
        for path in sorted(ROOT.rglob("*.py")):
            self._read(path, path.relative_to(ROOT).as_posix())

    def _read(self, path: Path, name: str) -> None:
        text = path.read_text()
        self.words_any += len(re.findall(r"\bAny\b", text))
        lines = text.count("\n")
        if lines > MOST_LINES:
            self.long.append(f"{name} ({lines})")
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                number = len([one for one in given if one.arg not in ("self", "cls")])
                # The parameters of an estimator are what its user chooses; scikit-learn wants them in __init__.
                if number > MOST_PARAMETERS and not (node.name == "__init__" and name.startswith("estimators/")):
                    (self.wide_kernels if name.startswith("kernels/") else self.wide).append(f"{name}:{node.name} ({number})")
            elif isinstance(node, ast.ClassDef):
                methods = sum(isinstance(one, ast.FunctionDef) for one in node.body)
                if methods > MOST_METHODS:
                    self.large.append(f"{name}:{node.name} ({methods})")
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions += 1
                first = node.name.strip("_").split("_")[0]
                if len(node.name.strip("_").split("_")) == 1 and re.search(r"(ed|en|ing)$", first) and first not in NOUNS:
                    self.participles.append(f"{name}:{node.name}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", action="store_true", help="print the files and the stacks of one chunk")
    parser.add_argument("--names", action="store_true", help="print what is counted, name by name")
    given = parser.parse_args()
    ways = {algorithm: follow_chunk(algorithm) for algorithm in ("online-em", "auto")}
    if given.way:
        for algorithm, way in ways.items():
            print(f"{algorithm}: {len(way.files)} files")
            for name, calls in sorted(way.files.items()):
                print(f"  {calls:5}  {name}")
            for stack in sorted(way.stacks, key=len):
                print(f"  {len(stack) - 1} hops")
                for place in stack:
                    print(f"        {place}")
    source = Source()
    if given.names:
        for title in ("wide", "wide_kernels", "large", "long", "participles"):
            print(title, *getattr(source, title), sep="\n  ")
    rows = []
    for algorithm, way in ways.items():
        down = {place.split(":")[0] for stack in way.stacks for place in stack}
        rows.append(
            (f"hops / files from `partial_fit` down to kernels, {algorithm}", f"{way.hops} / {len(down)}", "<= 8 / <= 10")
        )
        rows.append((f"files of which any function is called on the way, {algorithm}", f"{len(way.files)}", "<= 10"))
    rows += [
        ("files crossed by `headwater fit gaussian file.csv`", f"{count_files_of_fit()}", "<= 40"),
        ("`Any` in src", f"{source.words_any}", "< 300"),
        ("functions over 8 parameters, without kernels / kernels", f"{len(source.wide)} / {len(source.wide_kernels)}", "< 40"),
        ("classes with more than 25 methods", f"{len(source.large)}", "fewer"),
        ("files over 400 lines", f"{len(source.long)}", "0"),
        ("functions at module level named by a participle", f"{len(source.participles)} of {source.functions:,}", "few"),
    ]
    for name, measured, wanted in rows:
        print(f"| {name} | {measured} | {wanted} |")


if __name__ == "__main__":
    main()

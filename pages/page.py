"""What a page is, and the list of all pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from pages.results import Figures, Results, plain

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

Measures = Iterator[tuple[str, Callable[[], Figures]]]  # the sets of a part, and what measures each
Part = Callable[[Any, Path | None], Measures]  # given a scale, and the directory of data sets if there is one


def data_directory() -> Path | None:
    """The directory that HEADWATER_DATA names, if it is one."""
    name = os.environ.get("HEADWATER_DATA", "")
    return Path(name) if name and Path(name).is_dir() else None


def nothing_absent(scale: Any, data: Path | None) -> list[str]:
    return []


def nothing_to_prepare() -> None:
    pass


@dataclass(frozen=True)
class Page:
    """A page: what is measured for it, and how its template and pictures read that.

    `values` holds for each name of the template a function of the results. Where the name is that of a part, it is None until
    the part is measured. `names` are constants and functions that the template knows besides, `filters` what it may pipe values
    through. `pictures` are drawn if the page shows them.
    """

    name: str
    room: str  # the folder of the template, and of the page beneath docs
    parts: Mapping[str, Part]
    full: Any  # a frozen dataclass that says how much is done
    quick: Any  # the same for a run that only shows that everything works
    minutes: float  # an estimate of a full run on two cores; what runs took is stored with their figures
    seeds: str
    values: Mapping[str, Callable[[Results], Any]]
    names: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    pictures: Mapping[str, Callable[[Path, Results], None]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # files of the data directory without which there is no page
    absent: Callable[[Any, Path | None], list[str]] = nothing_absent  # data sets and peers that are not available
    prepare: Callable[[], None] = nothing_to_prepare  # before anything is measured: compile kernels
    silent: tuple[type[Warning], ...] = ()  # warnings that are no news here

    @property
    def template(self) -> str:
        return f"{self.room}/{self.name}.md"

    @property
    def out(self) -> Path:
        return DOCS / self.room

    def results(self, out: Path | None = None, scale: Any = None) -> Results:
        """The figures that are stored in a folder, or in docs."""
        return Results.read((out or self.out) / f"{self.name}.json", plain(asdict(scale or self.full)))


# Names by the module that has the page, shortest run first.
MODULES = {
    "papers": (
        "rates",
        "late_clusters",
        "variational",
        "boem",
        "calibration",
        "latent_factors",
        "online_em",
        "moment_matching",
    ),
    "benchmarks": (
        "tables",
        "missing_values",
        "anomalies",
        "thousand_parts",
        "parts_and_rounds",
        "shapes",
        "many_machines",
        "refinement",
    ),
    "examples": ("newsgroups", "regimes", "forecasts", "chorales", "drift", "msnbc", "letters"),
}
NAMES = {name: room for room, names in MODULES.items() for name in names}


def find(name: str) -> Page:
    """The page of this name."""
    return import_module(f"{NAMES[name]}.{name}").PAGE

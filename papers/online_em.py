"""Paper 002's experiments made again: online EM for mixtures, hidden Markov models and sensor arrays (Cappé, slides of 2010).

``python -m pages online_em`` measures them and writes docs/papers/online_em.md. All data are generated.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

from sklearn.exceptions import ConvergenceWarning

from pages.page import Measures, Page
from papers import online_em_array as array
from papers import online_em_averaging as averaging
from papers import online_em_batch as batch
from papers import online_em_blocks as blocks
from papers import online_em_chains as chains
from papers import online_em_exponents as exponents
from papers import online_em_gradient as gradient
from papers import online_em_limit as limit
from papers import online_em_normals as normals
from papers import online_em_pictures as pictures
from papers import online_em_pictures_chains as pictures_chains
from papers import online_em_smoothing as smoothing
from papers import online_em_values as values
from papers.online_em_scale import Scale

QUICK = Scale(copies=8, few=2, rows=3000, marks=6, passes=12, chain=2000, sizes=(500, 2000))


def measure_records(scale: Scale, data: Path | None) -> Measures:
    for rows in batch.LENGTHS:
        yield f"passes/{rows}", partial(batch.passes_set, rows, scale)
    for rows in scale.sizes:
        yield f"sizes/{rows}", partial(batch.sizes_set, rows, scale)
    yield "starts", partial(batch.starts_set, scale)


def measure_averaging(scale: Scale, data: Path | None) -> Measures:
    yield "trajectories", partial(averaging.averaging_set, scale)


def measure_exponents(scale: Scale, data: Path | None) -> Measures:
    for case in exponents.TRUTHS:
        for start in exponents.STARTS:
            yield f"{case}/{start}", partial(exponents.exponents_set, case, start, scale)


def measure_blocks(scale: Scale, data: Path | None) -> Measures:
    for line in blocks.LINES:
        for size in blocks.SIZES:
            yield f"{line}/{size}", partial(blocks.blocks_set, line, size, scale)


def measure_gradient(scale: Scale, data: Path | None) -> Measures:
    for decay in gradient.DECAYS:
        yield f"beside/{decay:g}", partial(gradient.beside_set, decay, scale)
        yield f"leaving/{decay:g}", partial(gradient.leaving_set, decay, scale)


def measure_scans(scale: Scale, data: Path | None) -> Measures:
    yield "scans", partial(batch.scans_set, scale)


def measure_limit(scale: Scale, data: Path | None) -> Measures:
    for law in limit.LAWS:
        yield law.name, partial(limit.limit_set, law, scale)


def measure_smoothing(scale: Scale, data: Path | None) -> Measures:
    for law in smoothing.LAWS:
        yield law, partial(smoothing.smoothing_set, law, scale)


def measure_chains(scale: Scale, data: Path | None) -> Measures:
    for case in chains.CASES:
        for line in chains.LINES:
            yield f"{case}/{line.name}", partial(chains.chains_set, case, line, scale)


def measure_array(scale: Scale, data: Path | None) -> Measures:
    for rows in array.sizes(scale):
        for line in array.LINES:
            yield f"{rows}/{line.name}", partial(array.array_set, line, rows, scale)


def measure_efficiency(scale: Scale, data: Path | None) -> Measures:
    for case in averaging.TRUTHS:
        for rows in averaging.sizes(scale):
            yield f"{case}/{rows}", partial(averaging.efficiency_set, case, rows, scale)


PAGE = Page(
    name="online_em", room="papers", full=Scale(), quick=QUICK, minutes=25, seeds="0 to the number of copies, fixed",
    parts={
        "records": measure_records, "limit": measure_limit, "averaging": measure_averaging, "efficiency": measure_efficiency,
        "exponents": measure_exponents, "blocks": measure_blocks, "gradient": measure_gradient, "scans": measure_scans,
        "smoothing": measure_smoothing, "chains": measure_chains, "array": measure_array,
    },
    values=values.VALUES,
    names={
        "code": SimpleNamespace(
            array=array, averaging=averaging, batch=batch, blocks=blocks, chains=chains, exponents=exponents, normals=normals,
            smoothing=smoothing,
        ),
        "mixture": values.mixture, "typical": values.typical, "decay_name": values.decay_name, "passages": values.passages,
        "last_emissions": values.last_emissions,
    },
    pictures={**pictures.PICTURES, **pictures_chains.PICTURES},
    silent=(ConvergenceWarning,),
)  # fmt: skip

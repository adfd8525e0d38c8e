"""Messages of the library in the words of the command line: options take the place of arguments."""

from __future__ import annotations

import re

# Arguments that have an option; other parameters of models are given by --set, other read options by --read.
OPTIONS = {
    **{name: f"--{name}" for name in ("format", "columns", "exclude", "target", "weight", "label", "key", "text")},
    **{name: f"--{name}" for name in ("categories", "missing", "dates", "vocabulary", "shuffle", "seed", "algorithm", "keep")},
    **{name: f"--{name}" for name in ("rounds", "passes", "checkpoint")},
    "security": "--tls-cert",
    "part_rows": "--part-rows",
    "chunk_rows": "--chunk-rows",
    "half_life": "--half-life",
    "resolution": "--resolution",
    "n_components": "-k",
    "random_state": "--seed",
    "y": "--target",
    "sample_weight": "--weight",
    "labels": "--label",
    "standard_errors": "--standard-errors",
    "noise": "--standard-errors",
}
READ_OPTIONS = ("header", "delimiter", "decimal", "array", "width", "lowercase", "shortest", "stop_words", "symbols")

PARAMETER_PATTERN = re.compile(r"^The '(\w+)' parameter of \w+ ")
SUBJECT_PATTERN = re.compile(rf"^({'|'.join((*OPTIONS, *READ_OPTIONS))})(?= (must|names|contains|cannot|forgets|mixes)\b)")
ASSIGNMENT_PATTERN = re.compile(rf"(?<![\w\-./'\"=])({'|'.join((*OPTIONS, *READ_OPTIONS))})=(?!=)('[^']*'|[\w*]+)?")
# Advice for Python users, and what takes its place on the command line.
PYTHON_ADVICE = (
    (
        re.compile(r"drop those rows or fill them in first, for example with sklearn\.impute\.SimpleImputer"),
        "--missing drop leaves such rows out, --missing zero puts zeros",
    ),
    (re.compile(r", so prune\(\) may leave (it|them) out"), ""),
    (re.compile(r"saved with raw_rows=False"), "saved with --no-raw-rows"),
)
# A mapping from columns to their kinds is a parameter of a model, and not the option --columns of the data.
KINDS_PATTERN = re.compile(r"(?<![\w\"])columns=(\{[^{}]*\})")
POWER_PATTERN = re.compile(r"(\d+)\*\*(\d+)")


def to_command_line_words(text: str) -> str:
    """Return a sentence of the library with options in place of arguments."""
    for advice, instead in PYTHON_ADVICE:
        text = advice.sub(instead, text)
    text = KINDS_PATTERN.sub(r'--set "columns=\1"', text)
    text = PARAMETER_PATTERN.sub(lambda found: f"{OPTIONS.get(found[1], f'--set {found[1]}')} ", text)
    text = SUBJECT_PATTERN.sub(lambda found: OPTIONS.get(found[1], f"--read {found[1]}"), text)
    return ASSIGNMENT_PATTERN.sub(_option_for, text)


def _option_for(found: re.Match[str]) -> str:
    name, value = found[1], (found[2] or "").strip("'")
    value = POWER_PATTERN.sub(lambda power: str(int(power[1]) ** int(power[2])), value)
    if name in OPTIONS:
        return f"{OPTIONS[name]} {value}".rstrip()
    return f"--read {name}={value or '...'}"

import inspect

import pytest

import headwater as hw
from headwater.cli.support.advice import OPTIONS, READ_OPTIONS, to_command_line_words
from headwater.cli.support.failures import error_sentence
from headwater.cli.support.options import ReadOptions

SENTENCES = {
    "use categories='one-hot', or exclude=": "use --categories one-hot, or --exclude",
    "missing must be one of 'drop', got 3": "--missing must be one of 'drop', got 3",
    "say header=True or header=False": "say --read header=True or --read header=False",
    "name one by array=": "name one by --read array=...",
    "hash them by vocabulary=2**20": "hash them by --vocabulary 1048576",
    "The 'tol' parameter of GaussianMixture must be a float": "--set tol must be a float",
    "The 'n_components' parameter of GaussianMixture must be": "-k must be",
    "whose comma may be a decimal point: decimal=','": "whose comma may be a decimal point: --read decimal=,",
    "cannot be learned; drop those rows or fill them in first, for example with sklearn.impute.SimpleImputer": (
        "cannot be learned; --missing drop leaves such rows out, --missing zero puts zeros"
    ),
    "rows went to it, so prune() may leave it out.": "rows went to it.",
    "a/text=3.csv has no rows of key==3": "a/text=3.csv has no rows of key==3",
}


@pytest.mark.parametrize("text", SENTENCES)
def test_arguments_become_options(text):
    assert to_command_line_words(text) == SENTENCES[text]


def test_every_argument_of_a_stream_has_an_option():
    known = set(inspect.signature(hw.stream).parameters) - {"source", "like", "prefetch"}
    assert known <= set(OPTIONS) | set(READ_OPTIONS)
    assert all(OPTIONS[name] == "--" + name.replace("_", "-") for name in set(ReadOptions.__dataclass_fields__) - {"read"})


@pytest.mark.parametrize(("told", "shown"), [
    ("", "there is not enough memory for this: "),
    ("Unable to allocate 168. GiB for an array with shape (1, 150000, 150000)", "(168. GiB were asked for)"),
])  # fmt: skip
def test_a_lack_of_memory_says_what_to_do(told, shown):
    sentence = error_sentence(MemoryError(told))
    assert shown in sentence and "covariance_type=diag" in sentence and "shape" not in sentence

"""The table of policies and hooks in docs/architecture.md says what the code does."""

import inspect
import re
from pathlib import Path

import headwater  # noqa: F401 - all policies are imported
from headwater.core.average import Average
from headwater.core.fit_result import FitResult
from headwater.core.policy import Policy
from headwater.policies.choose import mixture_policies
from headwater.policies.growth_states import GrowthPolicy

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
IN_FILES = {"blank_record", "find_problem"}  # which the text below the table tells of


def test_the_table_of_hooks_is_that_of_the_code():
    hooks = {name for name, one in vars(Policy).items() if inspect.isfunction(one)} - IN_FILES
    table = PAGE.read_text().split("| policy, record |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)`, `(\w+)`[^|]*\|(.*)\|$", table, re.MULTILINE)
    told = {name: (record, {word for word in re.findall(r"\w+", cells) if word in hooks}) for name, record, cells in rows}
    kinds = [*map(type, mixture_policies(None, True)), GrowthPolicy, Average, FitResult]
    found = {
        kind.__name__: (kind.name, {hook for hook in hooks if getattr(kind, hook) is not getattr(Policy, hook)})
        for kind in kinds
    }
    assert told == found

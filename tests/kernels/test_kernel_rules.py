"""Rules of kernels: the same rows give the same bits, whatever their address and whatever was compiled before."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import headwater
from headwater.kernels import _jit

FILES = sorted((Path(headwater.__file__).parent / "kernels").glob("*.py"))

# Loops whose sums LLVM does not reorder: of integers, of sequential draws, or stored at every step.
IN_ORDER = {
    "gather_moments", "draw_components", "draw_parts", "walk", "draw_about", "gather_words", "place_words", "tokens_of",
    "gibbs_documents", "load_alike", "load_row", "list_observed", "gaussian_dense.take_large", "gaussian_dense.add_moments",
}  # fmt: skip


def innermost_loops(tree):
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            re.match("kernel|helper", ast.unparse(one)) for one in function.decorator_list
        ):
            for loop in ast.walk(function):
                inner = [one for one in ast.walk(loop) if isinstance(one, ast.For | ast.While) and one is not loop]
                if isinstance(loop, ast.For) and not inner:
                    yield function.name, loop


def sums_and_stores(loop):
    """Return the names that a loop sums into and the elements it writes; an element that does not change its index is a sum."""
    changing = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    changing |= {
        target.id
        for one in ast.walk(loop)
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    sums, stores = [], []
    for one in ast.walk(loop):
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            sums.append(one.target.id)
        for target in one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AugAssign) else []:
            if isinstance(target, ast.Subscript):
                stores.append(ast.unparse(target))
                if isinstance(one, ast.AugAssign) and not changing & {
                    part.id for part in ast.walk(target) if isinstance(part, ast.Name)
                }:
                    sums.append(ast.unparse(target))
    return sums, stores


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_loop_sums_and_writes_at_once(file):
    """LLVM vectorises such a loop only if the arrays do not overlap; otherwise it sums in another order."""
    for name, loop in innermost_loops(ast.parse(file.read_text())):
        if not {name, f"{file.stem}.{name}"} & IN_ORDER:
            sums, stores = sums_and_stores(loop)
            assert not (sums and stores), f"{file.name}:{loop.lineno} ({name}) sums into {sums} and writes to {stores}"


def test_every_kernel_and_every_helper_is_inlined_into_its_callers():
    """A helper that is not inlined has several copies, and which one runs depends on what was loaded first."""
    for file in FILES:
        import_module(f"headwater.kernels.{file.stem}")
    ours = [one for one in _jit._ours if (one.py_func.__module__ or "").startswith("headwater.")]
    assert len(ours) > 50
    for dispatcher in ours:
        assert dispatcher.targetoptions["forceinline"], dispatcher.__name__
        if isinstance(dispatcher, _jit._Helper):
            routine = isinstance(dispatcher, _jit._Routine)  # which each kernel has a copy of, see test_kernel_cache.py
            assert dispatcher.part.targetoptions["forceinline"] is not routine, dispatcher.__name__

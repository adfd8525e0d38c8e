"""The decorators of kernels and of their helpers, and the line that explains a slow first call."""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
from numba.core.registry import CPUDispatcher

from headwater.kernels._cache import cache_directory, release_lock, use_safe_files
from headwater.kernels._helpers import compiler_options, kernel_options, routine_options

# What each flag of LLVM buys, measured on softmax blocks (AVX2, Numba 0.68):
# - reassoc vectorises sums: 6.5 against 1.0 G/s for a dot product, 0.46 against 0.20 G/s for
#   max, exp, sum and divide over rows of 64 components.
# - contract allows fused multiply-add, arcp lets a division by an invariant become one
#   reciprocal, nsz forgets the sign of zero.
# - nnan and ninf bought nothing, not even for max, and they break what kernels rely on: isnan
#   is folded to False, and log-sum-exp of (-inf, ..., -inf) is nan instead of -inf.
FAST = {"contract", "nsz", "reassoc", "arcp"}

# Rounding by adding and subtracting 1.5 * 2**52 is a no-op to reassoc, so helpers that live on
# exact arithmetic go without it. Flags sit on single instructions and survive LLVM's inlining
# into a FAST caller; Numba's own inline="always" pastes source, and the caller's flags with it.
EXACT = {"contract", "nsz"}

COMPILING = "headwater is compiling its kernels for this machine: a few seconds, once; they are cached."
COMPILING_ANEW = (
    "headwater is compiling its kernels for this machine: a few seconds, at every start, since there is no directory to keep "
    "them in; NUMBA_CACHE_DIR can name one."
)


def kernel(function: FunctionType | None = None, **options: object) -> Any:
    """Compile a function over arrays that Python calls: no GIL, cached on disk, NumPy's division.

    Parameters
    ----------
    function : callable, optional
        The function, when used as ``@kernel``.
    **options
        Further options of ``numba.njit``, when used as ``@kernel(parallel=True)``. They
        override ours.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def total(x):
    ...     s = 0.0
    ...     for i in range(x.size):
    ...         s += x[i]
    ...     return s
    >>> total(np.ones(3))
    3.0
    """
    return _decorate(function, {"fastmath": FAST, **options}, _Kernel)


def helper(function: FunctionType | None = None, **options: object) -> Any:
    """Compile a part of kernels: as a kernel is, but for callers among kernels it makes no machine code of its own.

    It can be called from Python, too, as tests do; it is then compiled once more, as a kernel.
    """
    return _decorate(function, {"fastmath": FAST, **options}, _Helper)


def helper_exact(function: FunctionType | None = None, **options: object) -> Any:
    """Compile a small part of kernels whose roundings must stay as written."""
    return _decorate(function, {"fastmath": EXACT, **options}, _Helper)


def routine(function: FunctionType | None = None, **options: object) -> Any:
    """Compile a part of kernels that they call: there is one copy of it in each kernel, however often it is called there.

    That is for parts that are worth a call, those that go through a row or more. Code that is inlined again and again is most
    of what a large kernel takes to compile.
    """
    return _decorate(function, {"fastmath": FAST, **options}, _Routine)


def _decorate(
    function: FunctionType | None, options: dict[str, object], kind: type[_Kernel]
) -> _Kernel | Callable[[FunctionType], _Kernel]:
    # error_model="numpy": a check for division by zero is a branch, and costs 4x in a loop.
    # forceinline (LLVM's, not Numba's): a call left standing in a loop would keep it from vectorising. And a helper that is
    # not inlined is a symbol that several compiled kernels define, each optimised on its own: which of them runs would depend
    # on what was compiled or loaded before, and with it the order of sums, so a first run would differ from a second.
    options = {"cache": True, "nogil": True, "error_model": "numpy", "forceinline": True, **options}

    def compile_lazily(function: FunctionType) -> _Kernel:
        try:
            dispatcher = numba.njit(**{**options, **kernel_options})(function)
        except RuntimeError:
            # No place for a cache (read-only installation, code typed at a prompt): slow at every
            # start, but better than a package that cannot be imported.
            dispatcher = numba.njit(**{**options, **kernel_options, "cache": False})(function)
        dispatcher.__class__ = kind
        use_safe_files(dispatcher)
        if kind is not _Kernel:
            part = routine_options if kind is _Routine else compiler_options
            dispatcher.part = numba.njit(**{**options, **part, "cache": False})(function)
        _ours.append(dispatcher)
        return dispatcher

    return compile_lazily if function is None else compile_lazily(function)


class _Kernel(CPUDispatcher):
    """A function that Python calls."""

    def compile(self, sig: tuple[numba.types.Type, ...] | str) -> Callable[..., object]:
        """Compile without garbage collection, which takes an eighth of the time and finds no garbage.

        Arrays that may not be written to (of a mapped file, or of a data frame) are taken as others are: each combination of
        the two would be compiled anew. No kernel writes to what it is only given to read.
        """
        if isinstance(sig, tuple) and (writable := tuple(map(_as_writable, sig))) != sig:
            compiled = self.compile(writable)
            self._insert([kind._code for kind in sig], compiled)  # found by later calls as quickly as any other
            return compiled
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            release_lock(self)
            if collects:
                gc.enable()


def _as_writable(kind: numba.types.Type) -> numba.types.Type:
    """Return the type of arrays that may be written to, in place of others."""
    if isinstance(kind, numba.types.Array) and not kind.mutable:
        return kind.copy(readonly=False)
    if isinstance(kind, numba.types.Tuple):
        return numba.types.Tuple(tuple(map(_as_writable, kind)))
    return kind


class _Helper(_Kernel):
    """A function that kernels call."""

    part: CPUDispatcher

    @property
    def _numba_type_(self) -> numba.types.Dispatcher:
        return numba.types.Dispatcher(self.part)


class _Routine(_Helper):
    """A function that kernels call, and do not inline."""


_ours: list[_Kernel] = []


def kernels() -> list[_Kernel]:
    """Return the kernels that were imported so far, without helpers."""
    return [one for one in _ours if not isinstance(one, _Helper)]


def _announce_compilation() -> None:
    """Log one line when the first of our kernels misses the cache; cost nothing otherwise.

    Numba broadcasts "numba:compile" after it has looked on disk and found nothing, so a warm
    cache stays silent and calls of compiled kernels are not watched at all.
    """
    from numba.core import event

    class Announcer(event.Listener):
        announced = False

        def on_start(self, happening: event.Event) -> None:
            dispatcher = (happening.data or {}).get("dispatcher")
            if not self.announced and any(dispatcher is known for known in _ours):
                # Not unregistered: that would change the list which broadcast is walking, and
                # skip another listener.
                self.announced = True
                logging.getLogger("headwater").warning(COMPILING if cache_directory(dispatcher) else COMPILING_ANEW)

        def on_end(self, happening: event.Event) -> None:
            pass

    event.register("numba:compile", Announcer())


# numba.core is not public: if it changes, only this line is missing.
with contextlib.suppress(Exception):
    _announce_compilation()

"""Parts of kernels: typed, lowered and optimised by Numba, but never turned into machine code of their own.

A helper is inlined into the kernels that call it (see _jit.py), so a helper never runs by itself. Numba would
nevertheless generate machine code, two wrappers and a file in the cache for each: 26 functions for the first Gaussian mixture,
of which four are called. Without that, a first fit compiles in two thirds of the time.

A routine is not inlined. Each kernel has one copy of it, under a name that no other kernel can see, so that what runs does not
depend on what was loaded before. It is optimised once, in the kernel that calls it. The sampler of spectra, which inlined the
same sums in five places, compiles in less than half the time with routines.

Numba's compiler is not a public promise of its own. Where its parts have changed, the options below are empty, and helpers and
routines are compiled as kernels are: the same answers but for rounding, only later.
"""

from __future__ import annotations

import contextlib

# What `numba.njit` is told beside the options of _jit.py.
compiler_options: dict[str, object] = {}  # of helpers
routine_options: dict[str, object] = {}
kernel_options: dict[str, object] = {}

with contextlib.suppress(ImportError, AttributeError):
    from llvmlite.binding import ModuleRef
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, StateDict, _LowerResult
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.typed_passes import NativeLowering

    class _HelperLibrary(JITCodeLibrary):
        """A module that callers link, outside the engine that generates machine code."""

        routine = ""  # its name, if it is not inlined
        is_called = False  # whether kernels call it, so that it must not be inlined

        def add_ir_module(self, ir_module: ModuleRef) -> None:
            if self.is_called:  # here, since llvmlite 0.46 adds the attribute to return values of parsed functions
                for function in ir_module.functions:
                    if not function.is_declaration:
                        function.attributes.add("noinline")
            super().add_ir_module(ir_module)

        def finalize(self) -> None:
            for library in _inlined(self):
                if hasattr(library, "_reload_init"):  # Numba 0.63 and newer
                    self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            if not self.routine:
                self._optimize_final_module()
            self._final_module.verify()
            self._finalize_dynamic_globals()
            self._finalized = True

    class _KernelLibrary(JITCodeLibrary):
        """The module of a kernel: with a copy of every routine that is called in it, which nobody else can see."""

        def finalize(self) -> None:
            self._linking_libraries = [*_inlined(self), *_routines(self)]
            super().finalize()

        def _optimize_final_module(self) -> None:
            names = {one.routine for one in self._linking_libraries if _is_routine(one)}
            for function in self._final_module.functions:
                if function.name in names:
                    function.linkage = "internal"
            super()._optimize_final_module()

    def _is_routine(library: JITCodeLibrary) -> bool:
        return isinstance(library, _HelperLibrary) and bool(library.routine)

    def _inlined(library: JITCodeLibrary) -> list[JITCodeLibrary]:
        """Return the libraries that a library is linked to, each once, in order, without routines."""
        return [one for one in dict.fromkeys(library._linking_libraries) if not _is_routine(one)]

    def _routines(library: JITCodeLibrary) -> list[_HelperLibrary]:
        """Return the libraries of the routines that are called in a library, and in what is inlined into it."""
        seen: dict[_HelperLibrary, None] = {}
        waiting = list(library._linking_libraries)
        while waiting:
            one = waiting.pop(0)
            if isinstance(one, _HelperLibrary) and one not in seen:
                seen[one] = None
                waiting += one._linking_libraries
        return [one for one in seen if one.routine]

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _HelperLowering(NativeLowering):
        """Numba's lowering, into a library of the kind above."""

        _name = "headwater_helper_lowering"

        def run_pass(self, state: StateDict) -> bool:
            library = state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            library.is_called = not state.flags.forceinline
            state.flags.no_compile = True
            super().run_pass(state)
            lowered = state["cr"]
            if library.is_called:
                library.routine = lowered.fndesc.llvm_func_name
            library.finalize()
            # A dispatcher needs a built-in function for every signature, by which callers find the library.
            name = [].append
            state.targetctx.insert_user_function(name, lowered.fndesc, [library])
            state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=name, env=lowered.env)
            return True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _KernelLowering(NativeLowering):
        """Numba's lowering, into a library that keeps routines to itself."""

        _name = "headwater_kernel_lowering"

        def run_pass(self, state: StateDict) -> bool:
            state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return bool(super().run_pass(state))

    def _compiler(lowering: type[NativeLowering]) -> type[CompilerBase]:
        """Return Numba's passes, with another one for the lowering."""

        class Compiler(CompilerBase):
            def define_pipelines(self) -> list[PassManager]:
                usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
                manager = PassManager(usual.pipeline_name)
                for one, description in usual.passes:
                    manager.add_pass(lowering if one is NativeLowering else one, description)
                manager.finalize()
                return [manager]

        return Compiler

    # Nothing calls a kernel by a pointer of C: without that wrapper it compiles a little sooner.
    compiler_options = {"pipeline_class": _compiler(_HelperLowering), "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    routine_options = {**compiler_options, "forceinline": False}
    kernel_options = {"pipeline_class": _compiler(_KernelLowering), "no_cfunc_wrapper": True}

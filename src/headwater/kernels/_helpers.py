"""Helpers of kernels: typed, lowered and optimised by Numba, but never turned into machine code of their own.

Every helper is inlined into the kernels that call it (see _jit.py), so a helper never runs by itself. Numba would
nevertheless generate machine code, two wrappers and a file in the cache for each: 26 functions for the first Gaussian mixture,
of which four are called. Without that, a first fit compiles in two thirds of the time.

Numba's compiler is not a public promise of its own. Where its parts have changed, `compiler_options` is empty, and helpers are
compiled as kernels are: the same answers, only later.
"""

from __future__ import annotations

import contextlib
from typing import Any

compiler_options: dict[str, Any] = {}

with contextlib.suppress(ImportError, AttributeError):
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.typed_passes import NativeLowering

    class _HelperLibrary(JITCodeLibrary):
        """A module that callers link, outside the engine that generates machine code."""

        def finalize(self) -> None:
            for library in dict.fromkeys(self._linking_libraries):  # each once, in order
                if hasattr(library, "_reload_init"):  # Numba 0.63 and newer
                    self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_dynamic_globals()
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _HelperLowering(NativeLowering):
        """Numba's lowering, into a library of the kind above."""

        _name = "headwater_helper_lowering"

        def run_pass(self, state: Any) -> bool:
            library = state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            lowered = state["cr"]
            library.finalize()
            # A dispatcher needs a built-in function for every signature, by which callers find the library.
            name = [].append
            state.targetctx.insert_user_function(name, lowered.fndesc, [library])
            state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=name, env=lowered.env)
            return True

    class _HelperCompiler(CompilerBase):
        """Numba's passes, the last but for the lowering."""

        def define_pipelines(self) -> list[Any]:
            usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager = PassManager(usual.pipeline_name)
            for one, description in usual.passes:
                manager.add_pass(_HelperLowering if one is NativeLowering else one, description)
            manager.finalize()
            return [manager]

    compiler_options = {"pipeline_class": _HelperCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

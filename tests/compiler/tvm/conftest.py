"""Compiles Python functions of tensors, and runs kernel and TensorFlow side by side."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from tests.compiler.tvm import exact
from tests.compiler.tvm.host import Loaded

_NUMBER = itertools.count()


def library_of(function: Callable[..., Any], specs: Sequence[tf.TensorSpec]) -> Any:
    """Return the FunctionDefLibrary of a Python function, and its concrete function."""
    concrete = tf.function(function).get_concrete_function(*specs)
    definition = concrete.graph.as_graph_def().library
    library = type(definition)()
    library.function.add().CopyFrom(concrete.function_def)
    library.function.extend(definition.function)
    return library


class Compiler:
    """Compiles Python functions of tensors, and runs kernel and TF side by side.

    Kernels whose loops are the same are one: most of the time goes into generating code.
    """

    def __init__(self, folder: Path, counts: exact.Counts | None = None) -> None:
        """`counts`: of kernels that are compared over the ring as well, see `exact`."""
        self._folder = folder
        self._counts = counts
        self._made: dict[tuple[Any, ...], tuple[backend.Kernel, Path]] = {}

    def compile(
        self,
        function: Callable[..., Any],
        arrays: Sequence[np.ndarray],
        shapes: Sequence[Sequence[int | str]] | None = None,
        *,
        target: backend.Target | None = None,
        tasks: int = 3,
        sizes: Sequence[int] = (),
        constants: Sequence[int] = (),
        choices: backend.Chosen = MappingProxyType({}),
    ) -> Loaded:
        """Return the kernel for these arguments, or for a shape class that they belong to.

        Of ``choices``, those that it has. The arguments ``sizes`` are scalars for the function; as
        arrays they have so many elements.
        """
        shapes = shapes or [a.shape for a in arrays]
        specs = self._specs(arrays, shapes, sizes)
        name = f"test_{next(_NUMBER)}"
        path = self._folder / f"{name}.so"
        written = backend.write(
            library_of(function, specs),
            shapes,
            target=target,
            sizes=sizes,
            constants=constants,
            choices=choices,
        )
        key = (written.digest, *map(tuple, shapes), *written.choices.items())
        if key in self._made:
            kernel, made = self._made[key]
            shutil.copy(made, path)  # with slots of its own for the host's functions
        else:
            kernel = written.generate(name)
            backend.link(kernel, path, runtime=None)
            self._made[key] = kernel, path
        return Loaded(kernel, path, tasks)

    def compare(
        self,
        function: Callable[..., Any],
        *arrays: np.ndarray,
        shapes: Sequence[Sequence[int | str]] | None = None,
        rtol: float = 0.0,
        atol: float = 1.2e-38,
        target: backend.Target | None = None,
        tasks: int = 3,
        sizes: Sequence[int] = (),
        constants: Sequence[int] = (),
    ) -> Loaded:
        """Compile, run, and compare with TF on the same arrays; returns the kernel.

        The default ``atol`` is the smallest normal float32: TF's threads flush what is smaller.
        """
        expected = tf.nest.flatten(function(*map(tf.constant, arrays)))
        given = [np.zeros(a, a.dtype) if i in sizes else a for i, a in enumerate(arrays)]
        loaded = self.compile(
            function, given, shapes, target=target, tasks=tasks, sizes=sizes, constants=constants
        )
        check(loaded, given, expected, rtol=rtol, atol=atol)
        if self._counts is not None:
            asked = exact.Asked(
                library_of(function, self._specs(arrays, shapes, sizes)),
                shapes or [a.shape for a in arrays],
                target=target,
                sizes=sizes,
                constants=constants,
            )
            assert self._counts.compare(asked, arrays, self._folder, tasks) == []
        return loaded

    @staticmethod
    def _specs(
        arrays: Sequence[np.ndarray],
        shapes: Sequence[Sequence[int | str]] | None,
        sizes: Sequence[int],
    ) -> list[tf.TensorSpec]:
        return [
            tf.TensorSpec(
                [] if i in sizes else [d if isinstance(d, int) else None for d in s], a.dtype
            )
            for i, (a, s) in enumerate(
                zip(arrays, shapes or [a.shape for a in arrays], strict=True)
            )
        ]


def check(
    loaded: Loaded,
    arrays: Sequence[np.ndarray],
    expected: Sequence[Any],
    *,
    rtol: float,
    atol: float,
) -> None:
    """Run a kernel and compare it with what TF gave."""
    wanted = [np.asarray(e) for e in expected]
    results = loaded(arrays, [w.shape for w in wanted], [w.dtype for w in wanted])
    for result, want in zip(results, wanted, strict=True):
        if result.dtype.kind in "iub":
            np.testing.assert_array_equal(result, want)
        else:
            wide = np.float64
            np.testing.assert_allclose(
                result.astype(wide), want.astype(wide), rtol=rtol, atol=atol, equal_nan=True
            )


_counts = pytest.StashKey[exact.Counts]()


@pytest.fixture(scope="session")
def compiler(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    """Compile functions into a temporary folder; with --exact, over the ring as well."""
    counts = exact.Counts() if request.config.getoption("--exact") else None
    if counts is not None:
        request.config.stash[_counts] = counts
    return Compiler(tmp_path_factory.mktemp("kernels"), counts)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell what was compared over the ring."""
    counts = config.stash.get(_counts, None)
    if counts is not None:
        terminalreporter.write_line(str(counts))

"""The ops of this process: what each name stands for, and what is known of each version.

One registry, `OPS`, with one lock, which each change holds: an op's definition, a gradient of its
own, a function, a loaded library. An entry is replaced as a whole, so readers (a gradient, the
background worker) take no lock and do not wait while a library is loaded.

It calls its hooks for each new name and does not know what they do: autodiff gives the name a
gradient in TensorFlow, vectorize a converter.

Not for: programs and kernels, which the C++ runtime has registries of.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.ops import call, keras_tensors, recorded
from composite.ops.library import Library
from composite.ops.op import CompositeOp, Gradient

TakesKernels = Callable[..., Any]  # (op, kernel, call, **how), as CompositeOp.use_kernel


class Era(NamedTuple):
    """From when on eager calls of a name stand for a version."""

    since: int  # on the clock of recorded.moment
    digest: str


@dataclass(frozen=True)
class Name:
    """What an op's name stands for."""

    op: CompositeOp  # the object it stands for now
    eras: tuple[Era, ...]  # in order


@dataclass(frozen=True)
class OwnGradient:
    """What stands in for the derived gradient of a version."""

    function: Gradient | None = None
    refusal: str = ""  # without a function, why a request for the gradient is an error


class Registry:
    """The ops, functions and loaded libraries of a process.

    Attributes:
        lock: held by each change. Hold it to make several of them one.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._names: dict[str, Name] = {}
        self._versions: dict[str, CompositeOp] = {}  # by digest: a body may call an old one
        self._own_gradients: dict[str, OwnGradient] = {}  # by digest
        self._foreign_gradients: frozenset[str] = frozenset()  # names
        self._underived: tuple[str, ...] = ()  # digests
        self._functions: dict[str, FunctionDefLibrary] = {}  # by the name of function[0]
        self._libraries: dict[str, Library] = {}  # by the digest of their file
        self._hooks: tuple[Callable[[str], None], ...] = ()
        self._takes_kernels: TakesKernels | None = None
        os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self.lock = threading.RLock()  # a thread of the parent may have held it

    def on_new_name(self, hook: Callable[[str], None]) -> None:
        """Has `hook(op_name)` called once for each name, those that are defined already included.

        Giving the same hook again does nothing.
        """
        with self.lock:
            if hook in self._hooks:
                return
            self._hooks += (hook,)
            for op_name in list(self._names):
                hook(op_name)

    def on_use_kernel(self, hook: TakesKernels) -> None:
        """Has `hook(op, kernel, call, **how)` take the kernels that authors give."""
        self._takes_kernels = hook

    def use_kernel(self, op: CompositeOp, kernel: Any, call: Mapping[str, Any], **how: Any) -> Any:
        """What became of a kernel that an author gave."""
        assert self._takes_kernels is not None, "whoever makes ops sets it"
        return self._takes_kernels(op, kernel, call, **how)

    def define(self, op: CompositeOp) -> None:
        """Has the name of an op, whose program the runtime has, stand for this object from now on.

        An older version of the name is retired.
        """
        with self.lock:
            self._versions[op.digest] = op
            older = self._names.get(op.op_name)
            if older is None:
                self._names[op.op_name] = Name(op, (Era(recorded.moment(), op.digest),))
                for hook in self._hooks:
                    hook(op.op_name)
            elif older.op.digest == op.digest:
                self._names[op.op_name] = replace(older, op=op)
            else:
                era = Era(recorded.moment(), op.digest)
                self._names[op.op_name] = Name(op, (*older.eras, era))
                recorded.forget_forward_gradients()  # they are kept by name
                older.op.retire()
            self._find_underived()
            keras_tensors.register(op)
            if op.composes:  # a call that TensorFlow answered before may be the composition's now
                call.forget_eager_kernels()

    def current(self, op_name: str) -> CompositeOp | None:
        """The object that a name stands for."""
        known = self._names.get(op_name)
        return None if known is None else known.op

    def all_current(self) -> list[CompositeOp]:
        """The objects that names stand for, in the order of the names' definition."""
        return [known.op for known in list(self._names.values())]

    def version(self, digest: str) -> CompositeOp:
        """The object of a version, which a newer one may have taken the name from."""
        return self._versions[digest]

    def has_version(self, digest: str) -> bool:
        """Whether this process has a version."""
        return digest in self._versions

    def digest_at(self, op_name: str, moment: int | None = None) -> str:
        """The version that eager calls stood for at a moment, or stand for now; "" if unknown.

        Before the first definition that is the first version.
        """
        known = self._names.get(op_name)
        if known is None:
            return ""
        if moment is None:
            return known.eras[-1].digest
        past = (era for era in reversed(known.eras) if era.since <= moment)
        return next(past, known.eras[0]).digest

    def set_gradient(self, digest: str, function: Gradient) -> None:
        """Has `function(op, *output_gradients)` stand in for the derived gradient of a version."""
        with self.lock:
            own = self._own_gradients.get(digest, OwnGradient())
            self._own_gradients[digest] = replace(own, function=function)
            self._find_underived()
        recorded.forget_forward_gradients()  # they were made of the derived one

    def refuse_gradient(self, digest: str, reason: str) -> None:
        """Has a request for the gradient of a version raise `reason`, unless it has a function."""
        with self.lock:
            own = self._own_gradients.get(digest, OwnGradient())
            self._own_gradients[digest] = replace(own, refusal=reason)
            self._find_underived()

    def own_gradient(self, digest: str) -> OwnGradient | None:
        """What stands in for the derived gradient of a version; None for most."""
        return self._own_gradients.get(digest)

    def note_foreign_gradient(self, op_name: str) -> None:
        """Notes that TensorFlow had a gradient for a name before the op was defined.

        That one serves all versions.
        """
        with self.lock:
            self._foreign_gradients |= {op_name}
            self._find_underived()

    def overrides_gradient(self, op: CompositeOp) -> bool:
        """Whether the gradient of an op is not the derived one but its author's."""
        own = self._own_gradients.get(op.digest)
        return op.op_name in self._foreign_gradients or (
            own is not None and own.function is not None
        )

    def underived(self) -> tuple[str, ...]:
        """The versions whose gradient is not derived, sorted."""
        return self._underived

    def _find_underived(self) -> None:
        found = set(self._own_gradients)
        for op_name in self._foreign_gradients:
            if op_name in self._names:
                found.update(era.digest for era in self._names[op_name].eras)
        self._underived = tuple(sorted(found))

    def define_function(
        self, library: FunctionDefLibrary, make_known: Callable[[FunctionDefLibrary], None]
    ) -> FunctionDefLibrary:
        """The library by which function[0] is known here: this one, unless it is known already.

        `make_known(library)` is called the first time.
        """
        name = library.function[0].signature.name
        if name not in self._functions:
            with self.lock:
                if name not in self._functions:
                    make_known(library)
                    self._functions[name] = library
        return self._functions[name]

    def has_function(self, name: str) -> bool:
        """Whether a function is defined."""
        return name in self._functions

    def library(self, key: str, load: Callable[[], Library]) -> Library:
        """A loaded library; `load()` loads it the first time."""
        with self.lock:
            if key not in self._libraries:
                self._libraries[key] = load()
            return self._libraries[key]


OPS = Registry()

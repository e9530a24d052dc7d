"""The standard library: public functions of TensorFlow, written in the language of composites.

`tf.matmul` and its like are Python that may do more than one op. Here each is a plain function over
`tf.raw_ops` with the public signature and the public meaning; where a body calls TensorFlow's own,
the front end inlines ours. They run as Python too, which is how they are tested.

Public functions that are one generated op (`tf.nn.relu`, `tf.math.log`) need no entry.
Not for: what calls them (compiler.frontend); an importer of this imports TensorFlow.

To add a function: write it in the file of its subject under `@public(<its names>)`, with
TensorFlow's parameters and defaults, and add cases to tests/compiler/library/.
"""

from __future__ import annotations

import functools
import importlib

from composite.compiler.library.names import PUBLIC, Entry

__all__ = ["Entry", "entries", "find", "names"]

# Modules, in the order of docs/language.md: that of their own names.
SUBJECTS = (
    *("nn.activation", "arithmetic", "arrays", "assertions", "comparison", "complexes"),
    *("conversion", "nn.convolution", "creation", "images", "indexing", "layout", "linear"),
    *("nn.losses", "matrices", "nn.normalization", "nn.pooling", "randoms", "reduction", "scans"),
    *("segments", "shaping", "sorting", "special", "spectra", "text"),
)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return every function of the library, with TensorFlow's names for it."""
    for subject in SUBJECTS:
        importlib.import_module(f"{__name__}.{subject}")
    return tuple(PUBLIC)


@functools.cache
def _by_object() -> dict[int, Entry]:
    """Index the library by the identity of TensorFlow's own objects, which live for ever."""
    return {id(theirs): entry for entry in entries() for theirs in entry.objects()}


def find(function: object) -> Entry | None:
    """Return the entry for an object of TensorFlow's API, however the source names it."""
    return _by_object().get(id(function))


def methods(class_: type) -> list[str]:
    """Return the names of the methods that an object of a class has: "read" and so on."""
    prefixes = {f"{entry.gives}." for entry in entries() if entry.class_given() is class_}
    return [
        name.rpartition(".")[2]
        for entry in entries()
        for name in entry.names
        if name.startswith(tuple(prefixes))
    ]


def names() -> list[str]:
    """Return the public names that the library has, sorted: "tf.abs" and so on."""
    return sorted(name for entry in entries() for name in entry.names)

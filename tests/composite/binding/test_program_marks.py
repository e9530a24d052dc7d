"""Marks of programs: read with their defaults, and renamed wherever they stand."""

from __future__ import annotations

from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.binding.program_marks import (
    ProgramMarks,
    add_composition,
    add_origin,
    rename_places,
)


def _program() -> FunctionDefLibrary:
    program = FunctionDefLibrary()
    function = program.function.add()
    for name, text in {"_digest": "abc", "_place": "ops.py:1", "_module": "pack.ops"}.items():
        function.attr[name].s = text.encode()
    function.node_def.add(name="0").attr["_loc"].s = b"ops.py:2:5"
    return program


def test_what_is_not_there_has_its_default() -> None:
    assert ProgramMarks.of(_program()) == ProgramMarks(digest="abc", place="ops.py:1")


def test_what_is_added_is_read() -> None:
    program = _program()
    add_origin(program, "main:f")
    add_composition(program, "Erfc", replaces=True)
    found = ProgramMarks.of(program)
    assert (found.origin, found.composes, found.replaces) == ("main:f", "Erfc", True)
    add_composition(program, "Erfc", replaces=False)
    assert not ProgramMarks.of(program).replaces


def test_files_and_modules_are_renamed_in_functions_and_nodes() -> None:
    program = _program()
    rename_places(program, lambda text: f"pack/{text}", lambda module: module.upper())
    assert ProgramMarks.of(program) == ProgramMarks(digest="abc", place="pack/ops.py:1")
    assert program.function[0].attr["_module"].s == b"PACK.OPS"
    assert program.function[0].node_def[0].attr["_loc"].s == b"pack/ops.py:2:5"
    assert set(program.function[0].attr) == {"_digest", "_place", "_module"}

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from composite.compiler import frontend, tfr
from composite.compiler.schema import OpSchema
from composite.compiler.source import Source

Define = Callable[..., Any]
OpDef = Callable[..., Any]

K = 'name: "k" type: "int" default_value { i: 0 }'

BODY = '''
SCALE = 2.0

def body(x, k):
    """Scales.

    By two.
    """
    if k > 1 and k < 5:
        return x * SCALE
    return tf.sin(x)
'''


def digest_of(compile_body: Any, define: Define, op_def: OpDef, text: str) -> str:
    return str(compile_body(define(text), op_def("Test", attrs=[K])).digest)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("SCALE = 2.0", "\n\n# moved\nSCALE = 2.0"),
        ("By two.", "By 2."),
        ("return tf.sin(x)", "y = tf.sin(x)  # renamed\n    return y"),
        ("k > 1 and k < 5", "((k > 1) and (k < 5))"),
    ],
)
def test_the_digest_leaves_out_how_it_is_written(
    written: str, instead: str, compile_body: Any, define: Define, op_def: OpDef
) -> None:
    changed = BODY.replace(written, instead)
    assert changed != BODY
    assert digest_of(compile_body, define, op_def, changed) == digest_of(
        compile_body, define, op_def, BODY
    )


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("SCALE = 2.0", "SCALE = 2"),
        ("tf.sin(x)", "tf.cos(x)"),
        ("tf.sin(x)", "tf.sin(x, name='s')"),
        ("k > 1", "k >= 1"),
    ],
)
def test_the_digest_takes_in_what_it_does(
    written: str, instead: str, compile_body: Any, define: Define, op_def: OpDef
) -> None:
    changed = BODY.replace(written, instead)
    assert changed != BODY
    assert digest_of(compile_body, define, op_def, changed) != digest_of(
        compile_body, define, op_def, BODY
    )


def test_the_digest_takes_in_the_declaration(
    compile_body: Any, define: Define, op_def: OpDef
) -> None:
    digests = {
        compile_body(define(BODY), op_def("Test", attrs=[K.replace("i: 0", default)])).digest
        for default in ("i: 0", "i: 1")
    }
    assert len(digests) == 2


def test_the_text_gives_the_same_program(compile_body: Any, define: Define, op_def: OpDef) -> None:
    compiled = compile_body(define(BODY), op_def("Test", attrs=[K]))
    again = tfr.serialize(tfr.parse(tfr.print_module(compiled.module)), compiled.schema)
    assert again.SerializeToString(deterministic=True) == compiled.program.SerializeToString(
        deterministic=True
    )


def test_every_node_has_its_place(compile_body: Any, define: Define, op_def: OpDef) -> None:
    compiled = compile_body(define(BODY), op_def("Test", attrs=[K]))
    places = [n.attr["_loc"].s.decode() for f in compiled.program.function for n in f.node_def]
    assert "ops.py:10:12" in places  # tf.sin(x)
    assert all(place.startswith("ops.py:") for place in places)


def test_regions_see_their_inputs_only(compile_body: Any, define: Define, op_def: OpDef) -> None:
    compiled = compile_body(define(BODY), op_def("Test", attrs=[K]))
    main, *regions = compiled.program.function
    assert regions
    for function in compiled.program.function:
        signature = function.signature
        known = {arg.name for arg in signature.input_arg}
        if function is main:
            known |= {attr.name for attr in signature.attr}
        for node in function.node_def:
            assert {name.partition(":")[0] for name in node.input} <= known
            known.add(node.name)
        assert {name.partition(":")[0] for name in function.ret.values()} <= known
        assert set(function.ret) == {output.name for output in signature.output_arg}


def test_the_place_can_be_given(define: Define, op_def: OpDef) -> None:
    source = Source.of(define(BODY))
    schema = OpSchema.from_op_def(op_def("Test", attrs=[K]))
    module = frontend.translate(source, schema, lambda _: None)
    program = tfr.serialize(module, schema, place="elsewhere.py:3")
    assert program.function[0].attr["_place"].s == b"elsewhere.py:3"


def test_threads_compile_side_by_side(compile_body: Any, define: Define, op_def: OpDef) -> None:
    body, declared = define(BODY), op_def("Test", attrs=[K])

    def several(_: int) -> set[str]:
        return {str(compile_body(body, declared).digest) for _ in range(5)}

    with ThreadPoolExecutor(4) as pool:
        digests = set().union(*pool.map(several, range(4)))
    assert digests == {compile_body(body, declared).digest}


SCRIPT = """
import hashlib, sys
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2
from composite.compiler import frontend, tfr
from composite.compiler.schema import OpSchema
from composite.compiler.source import Source

def body(x, y, a, b):
    p, q, r, s = x, y, x, y
    if a > 0:
        p, q = q, p
        if b in (1, 2, 3):
            return p
        r = p + q
        s = tf.raw_ops.MatMul(a=p, b=q, transpose_b=True, transpose_a=a == 1)
    elif b:
        q = r = s = x * 2
    z = p + q * r - s
    return z

declared = text_format.Parse('''
    name: "Test"
    input_arg { name: "x" type: DT_FLOAT } input_arg { name: "y" type: DT_FLOAT }
    output_arg { name: "z" type: DT_FLOAT }
    attr { name: "a" type: "int" } attr { name: "b" type: "int" }
''', op_def_pb2.OpDef())
schema = OpSchema.from_op_def(declared)
module = frontend.translate(Source.of(body), schema, lambda _: None)
tfr.optimize(module)
program = tfr.serialize(module, schema)
print(hashlib.sha256(tfr.print_module(module).encode()).hexdigest())
print(hashlib.sha256(program.SerializeToString(deterministic=True)).hexdigest())
print(program.function[0].attr["_digest"].s.decode())
"""


def test_two_processes_write_the_same_bytes(run_python: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "ops_of_a_test.py").write_text(SCRIPT, encoding="utf-8")
    first, second = (
        run_python("import ops_of_a_test", env={"PYTHONHASHSEED": seed}).stdout.split()
        for seed in ("1", "2")
    )
    assert len(first) == 3
    assert first == second


@pytest.mark.parametrize(
    "order",
    [
        "import tensorflow, composite.compiler.tfr",
        "import composite.compiler.tfr, tensorflow",
    ],
)
def test_mlir_and_tensorflow_load_in_either_order(
    order: str, run_python: Callable[..., Any]
) -> None:
    run_python(
        f"{order}\n"
        "import tensorflow as tf\n"
        "from composite.compiler.tfr import dialect\n"
        "dialect.context()\n"
        "f = tf.function(lambda x: tf.sin(x) + x, jit_compile=True)\n"
        "assert float(f(tf.constant(0.0))) == 0.0\n",
        bare=True,
    )

from __future__ import annotations

import pytest

from composite.compiler import tfr
from composite.compiler.tfr import dialect

GOOD = """
func.func @Test(%x: !tfr.tensor {tfr.name = "x"}, %k: !tfr.attr {tfr.name = "k"}) -> !tfr.tensor {
  %0 = "tfr.call"(%x, %k) {keywords = ["x", "k"], op = "Op", stateful = false,
       operandSegmentSizes = array<i32: 1, 0, 0, 1, 0>} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
  %1 = "tfr.unary"(%0) {operator = "neg"} : (!tfr.tensor) -> !tfr.tensor
  %2 = "tfr.truth"(%k) : (!tfr.attr) -> i1
  %3 = scf.if %2 -> !tfr.tensor {
    scf.yield %0 : !tfr.tensor
  } else {
    scf.yield %1 : !tfr.tensor
  }
  return %3 : !tfr.tensor
}
"""


def test_a_valid_module_is_accepted() -> None:
    tfr.parse(GOOD)


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ('operator = "neg"', 'operator = "negate"', "does not satisfy the constraint"),
        ('op = "Op"', "op = 3 : i64", "expected base attribute 'builtin.string'"),
        ("stateful = false", "stateful = 1 : i64", "does not satisfy the constraint"),
        (', op = "Op"', "", 'attribute "op" is expected but not provided'),
        ('keywords = ["x", "k"]', 'keywords = ["x"]', "2 operands and 1 keywords"),
        ('keywords = ["x", "k"]', 'keywords = ["x", "x"]', "names an operand twice"),
        ('op = "Op"', 'op = "Op", name = 1 : i64', "attribute name that is no string"),
        ("i32: 1, 0, 0, 1, 0", "i32: 2, 0, 0, 0, 0", "expected '!tfr.tensor' but got '!tfr.attr'"),
        ("i32: 1, 0, 0, 1, 0", "i32: 1, 0, 0, 0, 0", "sum of elements"),
        ('"tfr.truth"(%k) : (!tfr.attr) -> i1', '"tfr.truth"(%k) : (!tfr.attr) -> i2', "i1"),
        ("scf.yield %1 : !tfr.tensor", "scf.yield %k : !tfr.attr", "along control flow edge"),
        ("return %3 : !tfr.tensor", "return %k : !tfr.attr", "doesn't match function result"),
        ("!tfr.tensor {tfr.name", "!tfr.tonsor {tfr.name", "expected dynamic type"),
        ('"tfr.unary"', '"tfr.unheard"', "unregistered operation"),
    ],
)
def test_mlir_verifies_the_dialect(written: str, instead: str, message: str) -> None:
    assert written in GOOD
    with pytest.raises(ValueError, match="not a valid TFR module") as caught:
        tfr.parse(GOOD.replace(written, instead))
    assert message in str(caught.value)


def test_an_unknown_type_name() -> None:
    with pytest.raises(ValueError, match="its types are tensor, sequence"):
        dialect.type_of("list")

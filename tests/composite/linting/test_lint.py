"""What is found, of which calls, where; and that nothing is found where there are kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.linting import Finding, LintReport, remedies
from composite.linting.calls import in_each_dtype
from tests.composite import dense_ops, gradient_ops
from tests.composite.linting import ops

FILE = Path(__file__).with_name("ops.py")
MATRIX = {"x": ("float32", ("m", "n"))}


def facts(report: LintReport) -> list[tuple[str, tuple[str, ...]]]:
    return [(finding.reason, finding.directions) for finding in report.findings]


def line_of(text: str) -> int:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


def test_an_op_with_kernels_in_every_dtype_has_no_findings() -> None:
    report = composite.lint(ops.clean)
    (one,) = report.coverage
    assert report.ok
    assert not report.findings
    assert one.calls == one.forward == one.gradients == one.backward >= 2


def test_a_file_is_told_op_by_op(golden: Callable[[str, str], None]) -> None:
    text = str(composite.lint(FILE, kinds=8))
    golden(text.replace("tests/composite/linting/", ""), "ops.txt")
    assert max(map(len, text.splitlines())) <= 80


def test_an_attribute_and_a_dtype_without_a_kernel_are_named() -> None:
    report = composite.lint(ops.unlisted)
    by_reason = {finding.reason: finding for finding in report.findings}
    listed = by_reason["op Bucketize is not in the kernel table"]
    assert listed.calls == ("T=float32, act=STEP",)
    assert listed.place.endswith(f"ops.py:{line_of('Bucketize')}:25")
    dtype = by_reason["x: dtype DT_COMPLEX64 is not covered"]
    assert dtype.calls == ('T=complex64, act=""',)
    assert dtype.remedy.startswith("convert to a dtype")


def test_the_gradient_alone_may_be_what_has_no_kernel() -> None:
    @Composite("LintGradientAlone", inputs=["x: float"], outputs=["y: float"])
    def gradient_alone(x):
        return tf.slice(x, [tf.cast(x[0, 0], tf.int32), 0], [2, 2])

    found = composite.lint(gradient_alone, MATRIX)
    refused = [f for f in found.findings if f.directions == ("gradient",)]
    assert refused
    assert {finding.remedy for finding in refused} == {remedies.GRADIENT}


def test_a_dim_that_must_be_known_is_a_warning() -> None:
    report = composite.lint(ops.varying, MATRIX)
    (finding,) = report.findings
    assert report.ok
    assert (finding.refuses, finding.remedy) == (False, remedies.KNOWN_SIZES)
    assert "only known sizes have: Split" in finding.reason
    assert not composite.lint(ops.varying, {"x": ("float32", (4, 8))}).findings


def test_what_the_declaration_shows() -> None:
    call = {"x": ("float32", ("m", "n")), "i": ("int64", ("k",)), "rate": 0.5}
    reasons = [finding.reason for finding in composite.lint(ops.rated, call).findings]
    assert [reason.partition(":")[0] for reason in reasons] == [
        "attribute rate is a float", "input i is always int64",
    ]  # fmt: skip


def test_64_bits_between_32_are_a_warning() -> None:
    assert facts(composite.lint(ops.wide, MATRIX)) == [
        ("it is computed in float64, and no input has 64 bits", ("forward",))
    ]


def test_a_backward_that_computes_a_product_again_is_a_warning() -> None:
    call = dict.fromkeys("xw", ("float32", ("n", "n")))
    report = composite.lint(ops.again, call)
    assert facts(report) == [("the backward computes MatMul again", ("gradient",))]

    @Composite(
        "LintKept", inputs=["x: float", "w: float"], outputs=["y: float", "z: float", "p: float"]
    )
    def kept(x, w):
        product = tf.matmul(x, w)
        return x, tf.tanh(product) * w[0, 0] * product, product

    assert not composite.lint(kept, call).findings


def test_a_gradient_of_its_author_s_is_not_looked_at() -> None:
    @Composite("LintOwn", inputs=["x: float"], outputs=["y: float"])
    def own(x):
        return tf.math.erfinv(x)

    @own.gradient
    def _(op, dy):
        return dy

    report = composite.lint(own, MATRIX)
    assert [finding.directions for finding in report.findings] == [("forward",)]
    assert report.coverage[0].notes == ["the gradient is its author's, not derived"]


def test_branches_and_loops_are_refused_where_they_stand() -> None:
    call = {"x": ("float32", ("n",)), "w": ("float32", ("n",))}
    report = composite.lint(gradient_ops.branch, call)
    assert not any(finding.refuses for finding in report.findings)

    @Composite("LintBranch", inputs=["x: float", "w: float"], outputs=["y: float"])
    def branch(x, w):
        if tf.reduce_sum(x) > 0.0:
            return tf.gather(x, tf.cast(w, tf.int32))
        return w

    found, *_ = composite.lint(branch, call).findings
    assert found.reason == "StatelessIf: an index or a divisor that only one branch may have"
    assert found.place.startswith("tests/composite/linting/test_lint.py:")
    (loop,) = composite.lint(gradient_ops.loop, call).findings
    assert loop.reason == "the trips of the loop cannot be counted beforehand"


def test_an_op_without_calls_is_told_by_its_program() -> None:
    @Composite("LintOpen", inputs=["x: float"], attrs=["k: int"], outputs=["y: float"])
    def open_(x, k):
        return tf.math.erfinv(x) * k

    report = composite.lint(open_)
    assert facts(report) == [("op Erfinv is not in the kernel table", ("forward",))]
    assert not report.ok
    assert "state its calls" in str(report)
    assert composite.lint(open_, {"k": 2}).coverage[0].calls > 0


def test_a_body_that_looks_at_a_value_is_told_where() -> None:
    @Composite("LintLooks", inputs=["x: float", "k: int32"], outputs=["y: float"])
    def looks(x, k):
        return tf.split(x, num_or_size_splits=4, axis=k)[0]

    report = composite.lint(looks, {"x": ("float32", (4, 8)), "k": ("int32", ())})
    assert not report.ok
    assert report.findings[0].place.partition(":")[0].endswith("test_lint.py")


def test_a_call_that_the_body_refuses_is_an_error() -> None:
    call = {"x": ("float32", (2, 3)), "w": ("float32", (2, 3))}
    with pytest.raises(ValueError, match=r"again: it refuses 2x3, 2x3"):
        composite.lint(ops.again, call)
    with pytest.raises(ValueError, match="a call is of one op"):
        composite.lint([ops.again, ops.clean], call)


def test_a_stated_call_is_looked_at_in_each_dtype() -> None:
    dims = {"input_": ("m", 8), "filter_": (4, 8), "bias": (4,)}
    call = {name: ("float32", one) for name, one in dims.items()}
    dtypes = [one["bias"][0] for one in in_each_dtype(dense_ops.dense, call)]
    assert dtypes == ["float32", "float64", "float16", "bfloat16"]


def test_a_finding_is_as_wide_as_a_terminal() -> None:
    finding = Finding(
        "op", "ops.py:1:2, called at ops.py:3:4", "word " * 40, "more " * 40, calls=("a",) * 9
    )
    lines = str(finding).splitlines()
    assert lines[0] == "ops.py:1:2: op"
    assert "    called at ops.py:3:4" in lines
    assert "    in: a; a; a; a; and 5 more" in lines
    assert max(map(len, lines)) <= 80

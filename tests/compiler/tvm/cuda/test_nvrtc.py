"""Machine code for GPUs, made without one."""

from __future__ import annotations

import re

import pytest
import tensorflow as tf

from composite.compiler.tvm.cuda import nvrtc
from composite.compiler.tvm.cuda.nvrtc import NvrtcError
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from tests.gpu.shim.cases import Case, written

installed = pytest.mark.skipif(
    not nvrtc.available(), reason="nvidia-cuda-nvrtc-cu12 is not installed"
)


def source() -> str:
    case = Case(lambda x, y: tf.nn.softmax(x * y + y), [["s0", 256]] * 2, "rows")
    return written("k", case).source


@installed
@pytest.mark.parametrize("level", ["sm_80", "sm_90a", "sm_100"])
def test_a_cubin_says_what_its_functions_take(level: str) -> None:
    made = nvrtc.cubin(source(), level)
    assert made.level == level
    assert made.data.startswith(b"\x7fELF")
    assert 16 <= made.usage["k_0"].registers <= 96
    assert (made.usage["k_0"].spilled, made.usage["k_0"].stack) == (0, 0)


@installed
def test_ptx_rounds_as_the_source_says() -> None:
    text = nvrtc.ptx(source(), "sm_80")
    assert ".target sm_80" in text
    assert "fma.rn.f32" in text  # of the exponential function
    # An instruction without its rounding may be contracted; .ftz loses subnormal numbers.
    assert not re.findall(r"\b(?:mul|add|sub|div|sqrt)\.(?:ftz\.|approx\.)?f32", text)
    assert ".ftz" not in text


@installed
def test_a_source_that_is_wrong_is_an_error_with_its_line() -> None:
    with pytest.raises(NvrtcError, match=r"kernels\.cu\(\d+\): error"):
        nvrtc.cubin(PREAMBLE + "__global__ void k() { nothing; }", "sm_80")


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_path", lambda: None)
    nvrtc._library.cache_clear()
    try:
        with pytest.raises(NvrtcError, match="pip install nvidia-cuda-nvrtc-cu12"):
            nvrtc.cubin(PREAMBLE, "sm_80")
    finally:
        nvrtc._library.cache_clear()
    assert not nvrtc.available()

"""The plan of a kernel's launches, as the runtime reads it from a record."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k

PLAN: dict[str, Any] = {
    "_device": "cuda:sm_80",
    "_launch_functions": ["k_0"],
    "_launch_work": ["s0 3 + 4 //"],
    "_launch_share": [1024],
    "_launch_threads": [256],
    "_launch_shared": [512],
    "_launch_arguments": ["in0 work0 out0 size0"],
    "_workspaces": ["s0 4 *"],
    "_aligned": ["in0"],
}


@pytest.fixture
def install(unique: Callable[[str], str], tmp_path: Path) -> Callable[..., None]:
    op = unique("RtLaunches")
    digest = k.register(k.twice(op))
    code = tmp_path / "k.cubin"
    code.write_bytes(b"whatever: nothing is launched")
    code.chmod(0o600)

    def install(**changed: Any) -> None:
        fields = {**PLAN, **changed, "T": tf.float32}
        k.request("composite_install", k.record("k", op, digest, [(-1,)], ["s0"], code, **fields))

    return install


def test_a_plan_is_taken(install: Callable[..., None]) -> None:
    install()
    install(_launch_grid=["s0 3 //,2"], _launch_block=["32,4,2"], _launch_dynamic=[65536],
            _launch_arguments=["in0 int=-3 float=0.5 double=1e300"], _launch_resident=[True],
            _alignment=64)  # fmt: skip
    install(_launch_functions=[], _launch_work=[], _launch_share=[], _launch_threads=[],
            _launch_shared=[], _launch_arguments=[], _workspaces=[], _aligned=[])  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("_launch_functions", [""], "a function has no name"),
        ("_launch_functions", ["a", "b"], "_launch_work: not one a launch"),
        ("_launch_work", ["s1"], "names a symbol that no input has"),
        ("_launch_work", ["s0 +"], "an operator lacks its operands"),
        ("_launch_share", [0], "a block does less than one unit"),
        ("_launch_share", [1, 1], "_launch_share: not one a launch"),
        ("_launch_threads", [1025], "1025 is not from 1 to 1024"),
        ("_launch_shared", [-1], "-1 is not from 0 to 49152"),
        ("_launch_grid", ["1", "1"], "_launch_grid: not one a launch"),
        ("_launch_grid", ["1,1,1,1"], "more than three dimensions"),
        ("_launch_grid", ["s1"], "names a symbol that no input has"),
        ("_launch_block", ["16,8"], "16,8 is no block of 256 threads"),
        ("_launch_block", ["2,2,2,32"], "2,2,2,32 is no block of 256 threads"),
        ("_launch_dynamic", [1 << 20], "1048576 is not from 0 to 232448"),
        ("_launch_dynamic", [1, 1], "_launch_dynamic: not one a launch"),
        ("_launch_resident", [True, False], "_launch_resident: not one a launch"),
        ("_launch_arguments", ["int=x"], '"int=x" is no argument of a launch'),
        ("_alignment", 48, "_alignment: 48 bytes, and tensors lie at multiples of 64"),
        ("_launch_arguments", ["in1"], "in1, and there are 1"),
        ("_launch_arguments", ["work1"], "work1, and there are 1"),
        ("_launch_arguments", ["size1"], "size1, and there are 1"),
        ("_launch_arguments", ["word"], '"word" is no argument of a launch'),
        ("_workspaces", ["x"], "_workspaces: x: not a dim expression"),
        ("_aligned", ["work0"], "work0 is no input and no output"),
        ("_device", "cuda:9", "it was built for cuda:9"),
    ],
)
def test_another_one_is_refused(
    install: Callable[..., None], field: str, value: Any, message: str
) -> None:
    with pytest.raises(tf.errors.OpError) as raised:
        install(**{field: value})
    assert message in raised.value.message
    if field.startswith("_launch") and "not one" not in message:
        assert field in raised.value.message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, ""),
        ({"_device": "CPU", **{name: [] for name in list(PLAN)[1:]}}, "k comes as machine code"),
        ({"_out_shapes": ["s0", "s0"]}, "it has 1 inputs and 2 outputs"),
        ({"_launch_share": [0]}, "a block does less than one unit"),
    ],
)
def test_a_built_kernel(unique: Callable[[str], str], changed: Any, message: str) -> None:
    """A library registers its kernels for GPUs, their machine code beside the record."""
    op = unique("RtBuiltLaunches")
    digest = k.register(k.twice(op))
    record = k.record("k", op, digest, [(-1,)], ["s0"], **{**PLAN, "T": tf.float32, **changed})
    content, image = record.SerializeToString(), b"no driver is asked"
    error = ctypes.create_string_buffer(512)
    sizes = (ctypes.c_size_t(len(content)), ctypes.c_size_t(len(image)), ctypes.c_size_t(512))
    code = k.library.composite_register_gpu_kernel(
        content, sizes[0], image, sizes[1], error, sizes[2]
    )
    assert (code != 0) == bool(message)
    assert message in error.value.decode()

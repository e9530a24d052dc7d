"""Kernels outside a graph, called with NumPy arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from composite.compiler.tvm.ir.constants import Packed
from composite.kernels import host
from tests.runtime import kernel_support as support

_ADD = r"""
typedef struct { const Any* args; } Work;
static int part(int task, Env* env, void* data) {
  const Any* args = ((Work*)data)->args;
  for (int64_t i = task; i < ARG(0)->shape[0]; i += env->num_task)
    FLOATS(1)[i] = FLOATS(0)[i] + FLOATS(2)[i];
  FLOATS(1)[ARG(0)->shape[0]] = env->num_task;
  return 0;
}
int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int);
KERNEL(NAME) {
  Work work = {args};
  if (count != 3) return raise_error("TypeError", "expected 3 tensors");
  return __TVMBackendParallelLaunch(part, &work, 0);
}
KERNEL(NAME_pack0) {
  for (int64_t i = 0; i < ARG(0)->shape[0]; ++i) FLOATS(1)[i] = 10 * FLOATS(0)[i];
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return support.build(tmp_path_factory.mktemp("kernels"), "add", _ADD)


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_kernel_with_a_packed_constant(library: Path, tasks: int) -> None:
    x, y = np.arange(5, dtype=np.float32), np.zeros(6, np.float32)
    packed = host.pack(library, "add", [x], [Packed(0, 5, "float32")], tasks)
    assert len(packed) == 1 and packed[0].tolist() == [0, 10, 20, 30, 40]
    assert packed[0].ctypes.data % 16 != 0
    host.call(library, "add", [x, y, *packed], tasks)
    assert y.tolist() == [0, 11, 22, 33, 44, tasks]


def test_what_the_host_refuses(library: Path) -> None:
    x = np.zeros(5, np.float32)
    with pytest.raises(RuntimeError, match="kernel add raised TypeError: expected 3 tensors"):
        host.call(library, "add", [x])
    with pytest.raises(RuntimeError, match="has no kernel absent"):
        host.call(library, "absent", [x])
    with pytest.raises(RuntimeError, match="no kernel takes its dtype"):
        host.call(library, "add", [x.astype(np.complex64)])


def test_strided_arrays_are_refused(library: Path) -> None:
    with pytest.raises(ValueError, match="compact"):
        host.call(library, "add", [np.zeros((4, 4), np.float32)[:, ::2]])


def test_the_library_is_closed_again(library: Path) -> None:
    x = np.zeros(6, np.float32)
    host.call(library, "add", [x[:5], x, x[:5]])
    assert str(library) not in Path("/proc/self/maps").read_text(encoding="utf-8")

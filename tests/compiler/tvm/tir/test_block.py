"""Workspaces on the stack: which of them LLVM is kept from."""

from __future__ import annotations

import pytest
from tvm import tirx

from composite.compiler.tvm.tir.block import Block


def is_kept(stores: int, loads: int, *, inside: bool = False, step: int = 1) -> bool:
    """Whether LLVM leaves a workspace in memory that is used in vectors of these lanes."""
    block = Block()

    def use() -> None:
        buffer = block.workspace(64, "float32")
        zeros = tirx.const(0.0, "float32" if stores == 1 else f"float32x{stores}")
        block.store(buffer, 0, zeros, step)
        block.let(block.load(buffer, 0, loads))

    if inside:
        with block.loop(4):
            use()
    else:
        use()
    return "prefetch" in str(block.finish())


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("stores", "loads"), [(8, 16), (4, 8), (1, 8), (1, 1)])
def test_narrow_stores_keep_a_workspace_whole(stores: int, loads: int, inside: bool) -> None:
    assert is_kept(stores, loads, inside=inside)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("stores", "loads"), [(8, 8), (16, 16), (16, 8), (8, 1)])
def test_llvm_may_have_the_parts_of_any_other(stores: int, loads: int, inside: bool) -> None:
    assert not is_kept(stores, loads, inside=inside)


def test_a_store_of_single_elements_is_narrow() -> None:
    assert is_kept(8, 8, step=2)

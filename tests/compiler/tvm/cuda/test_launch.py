"""The plan of a kernel's launches: what a runtime without a compiler evaluates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from composite.compiler.tvm.cuda.launch import Argument, Launch, LaunchPlan

LAUNCH = Launch("k_0", "s0 s1 *", 1024, 256, 64, (Argument("in", 0), Argument("size", 1)))


def test_a_plan_is_what_its_fields_say() -> None:
    plan = LaunchPlan(
        (LAUNCH, replace(LAUNCH, dynamic=4096, resident=True)), ("s0 4 *",), (Argument("out", 1),)
    )
    assert plan.fields() == {
        "launch_functions": ("k_0", "k_0"),
        "launch_work": ("s0 s1 *", "s0 s1 *"),
        "launch_share": (1024, 1024),
        "launch_threads": (256, 256),
        "launch_shared": (64, 64),
        "launch_arguments": ("in0 size1", "in0 size1"),
        "launch_dynamic": (0, 4096),
        "launch_resident": (False, True),
        "workspaces": ("s0 4 *",),
        "aligned": ("out1",),
    }
    assert LaunchPlan.of(plan.fields()) == plan


@pytest.mark.parametrize(
    ("sizes", "multiprocessors", "blocks"),
    [((0, 5), 100, 0), ((1, 1), 100, 1), ((32, 32), 100, 1), ((32, 33), 100, 2),
     ((10**6, 10**6), 100, 10**12 // 1024), ((10**7, 10**7), 100, (1 << 31) - 1)],
)  # fmt: skip
def test_as_many_blocks_as_work_and_as_a_grid_has(
    sizes: tuple[int, int], multiprocessors: int, blocks: int
) -> None:
    assert LAUNCH.blocks({"s0": sizes[0], "s1": sizes[1]}, multiprocessors) == blocks


def test_blocks_that_wait_for_each_other_are_as_many_as_multiprocessors() -> None:
    sizes = {"s0": 10**6, "s1": 10**6}
    assert replace(LAUNCH, resident=True).blocks(sizes, 100) == 100


@pytest.mark.parametrize("text", ["in", "input0", "0", "size"])
def test_other_words_are_no_arguments(text: str) -> None:
    with pytest.raises(ValueError, match="is no argument of a launch"):
        Argument.parse(text)

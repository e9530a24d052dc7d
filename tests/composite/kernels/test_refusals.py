"""What was refused is not compiled again: in this process, and in one that begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import native
from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm import NotCovered, Target
from composite.kernels import produce, refusals
from composite.kernels.cache import Cache
from composite.kernels.key import Identity
from composite.kernels.verify import Mismatch

REGION = "__composite_region_of_test_refusals"


def request(*shapes: tuple[int | str, ...]) -> KernelRequest:
    return KernelRequest(op="CompositeCall", attrs={}, program=REGION, in_shapes=shapes)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    made = Cache(tmp_path / "kernels")
    monkeypatch.setattr(refusals, "open_default", lambda: made)
    monkeypatch.setattr(refusals, "announce", refusals.announce.__wrapped__)  # as a new process
    return made


def refused() -> dict[str, list[bytes]]:
    graph = GraphDef.FromString(native.call("composite_refused_nodes"))
    return {node.name: list(node.attr["nodes"].list.s) for node in graph.node}


def test_the_same_is_raised_again(cache: Cache, tmp_path: Path) -> None:
    refusals.check(cache, "k1", "Op")
    answer = NotCovered("no lowering of Lgamma", "ops.py:3", [1], "n4")
    refusals.note(cache, "k1", request((3, 4)), answer)
    refusals.note(cache, "k2", request((3, 4)), Mismatch("output 0 is off by 3"))
    for one in (cache, Cache(tmp_path / "kernels")):
        with pytest.raises(NotCovered, match="ops.py:3: no lowering of Lgamma") as raised:
            refusals.check(one, "k1", "Op")
        assert (raised.value.sizes, raised.value.node) == ((1,), "n4")
        with pytest.raises(Mismatch, match="output 0 is off by 3"):
            refusals.check(one, "k2", "Op")
        refusals.check(one, "k3", "Op")


def test_regions_of_a_new_process_leave_the_nodes_outside(cache: Cache) -> None:
    answer = NotCovered("no lowering of Lgamma", node="n4")
    refusals.note(cache, "k1", request((3, 4)), answer)
    refusals.note(cache, "k2", request(("s0", 4)), NotCovered("at this size", node="n5"))
    refusals.note(cache, "k3", request((3, 4)), NotCovered("a size", sizes=[0], node="n6"))
    refusals.note(cache, "k4", request((3, 4)), Mismatch("wrong"))
    refusals.announce()
    assert refused()[REGION] == [b"n4"]


def test_of_another_compiler_nothing_is_taken(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(refusals, "_toolchain", lambda: "an older one")
        other = KernelRequest(
            op="CompositeCall", attrs={}, program=f"{REGION}_older", in_shapes=((2,),)
        )
        refusals.note(cache, "k1", other, NotCovered("no", node="n7"))
    refusals.announce()
    assert f"{REGION}_older" not in refused()


def test_a_request_is_refused_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def compiled(*_: Any, **__: Any) -> None:
        asked.append(error)
        raise error

    monkeypatch.setattr(produce, "target_of", lambda _: Target.host())
    monkeypatch.setattr(produce, "identity", lambda one: Identity(one.op, ("of test_refusals",)))
    monkeypatch.setattr(produce, "_produced", compiled)
    for error, times in ((NotCovered("no lowering"), 1), (MemoryError("killed"), 2)):
        kept = Cache(None)  # in memory
        for _ in range(2):
            with pytest.raises(type(error), match=str(error)):
                produce.produce(request((3, 4)), kept, lambda: False)
        assert asked.count(error) == times


def test_a_damaged_note_counts_as_none(cache: Cache, tmp_path: Path) -> None:
    refusals.note(cache, "k1", request((3, 4)), Mismatch("wrong"))
    (file,) = (tmp_path / "kernels").rglob("refusals/*")
    assert json.loads(file.read_bytes().partition(b"\n")[2])["kind"] == "mismatch"
    file.write_bytes(file.read_bytes()[:-3])
    refusals.check(cache, "k1", "Op")
    refusals.announce()

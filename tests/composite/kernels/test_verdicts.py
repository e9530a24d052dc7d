"""Who decides on a kernel: the first process that measures it, for all that share its cache."""

import dataclasses

import pytest
import tensorflow as tf

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import python_values
from composite.kernels import key, verdicts
from composite.kernels.cache import Cache
from composite.measuring import decisions
from composite.measuring.decisions import Times, decide
from composite.ops import functions

KEY = "0" * 32
REQUEST = KernelRequest(op="X", program="abc", in_shapes=(("s0", 8),), hint=(32,))
RECORD = KernelRecord(
    op="X", name="k", program="abc", in_shapes=REQUEST.in_shapes, out_shapes=("s0",)
)


def times(ratio):
    return Times(10 * ratio, 10.0, ratio, ratio - 0.01, ratio + 0.01)


@dataclasses.dataclass
class World:
    """What is measured next, and what was installed."""

    measured: dict
    installed: list

    def verdict(self, cache, stopping=lambda: False):
        return verdicts.verdict(cache, KEY, RECORD, REQUEST, stopping)


@pytest.fixture
def world(monkeypatch):
    world = World({}, [])

    def install(name, record):
        assert name == "composite_install"
        world.installed.append(python_values(record))

    def measured(_made, _request, before=None):
        assert world.measured, "it was not to be measured"
        (asked, *_) = world.measured
        yield decide({asked: world.measured[asked]}, asked, before)
        yield decide(world.measured, asked, before)

    monkeypatch.setattr(native, "call", install)
    monkeypatch.setattr(verdicts, "measured", measured)
    return world


def test_the_call_that_asked_is_served_before_its_class_is_measured(world, tmp_path):
    world.measured = {32: times(0.8), 8: times(1.5), 128: times(0.5)}
    decision = world.verdict(Cache(tmp_path / "c"))
    assert [r["_sizes"] for r in world.installed] == [[32], [8, 32, 128]]
    assert world.installed[-1]["_kernel_wins"] == [False, True, True]
    assert world.installed[-1]["_verdict"] in (b"kernel", "kernel")
    assert decision.times == times(0.8)


def test_the_next_process_measures_nothing_and_decides_the_same(world, tmp_path):
    world.measured = {32: times(0.99), 128: times(1.3)}
    first = world.verdict(Cache(tmp_path / "c"))
    world.measured = {}
    assert world.verdict(Cache(tmp_path / "c")) == first
    assert world.installed[-1] == world.installed[-2]


def test_of_two_processes_at_once_the_first_decides(world, tmp_path):
    cache, other = Cache(tmp_path / "c"), Cache(tmp_path / "c")
    machine = key.machine()
    theirs = decide({32: times(0.99)}, 32)
    world.measured = {32: times(1.3)}

    def stopping():  # between the measurements
        other.store_timings(KEY, machine, decisions.to_json(theirs).encode())
        return False

    assert world.verdict(cache, stopping) == theirs
    assert world.installed[-1]["_kernel_wins"] == [True]


def test_times_of_an_earlier_version_are_measured_again(world, tmp_path):
    cache = Cache(tmp_path / "c")
    cache.store_timings(KEY, key.machine(), b'{"kernel_us": 1, "ratio": 0.5}')
    world.measured = {32: times(1.3)}
    assert not world.verdict(cache).kernel_wins


def test_a_process_that_ends_measures_no_further(world, tmp_path):
    cache = Cache(tmp_path / "c")
    world.measured = {32: times(0.8), 128: times(0.5)}
    assert len(world.verdict(cache, lambda: True).points) == 1
    assert cache.load_timings(KEY, key.machine()) is None


def of_one_float(monkeypatch):
    """Requests are of a body of one float32, which nobody expands."""

    class Body:
        input_dtypes = (tf.float32,)

    monkeypatch.setattr(verdicts, "expand", lambda *_: None)
    monkeypatch.setattr(functions, "body", lambda _: Body)
    monkeypatch.setattr(functions, "has_empty_product", lambda *_: False)
    monkeypatch.setattr(verdicts, "node_of", lambda _: ("X", None, {}))


def test_what_takes_long_is_not_measured_at_other_sizes(monkeypatch):
    """A bound on the work: sizes that would take longer than 4 ms a node are left out."""
    swept = []

    def sweep(_op, _arguments, _stamps, specs, cases, *_, fuses):
        assert specs[0].shape.as_list() == [None, 8]
        swept.append([case[0][0] for case in cases])
        return [times(0.5)] * len(cases)

    of_one_float(monkeypatch)
    monkeypatch.setattr(verdicts, "sweep", sweep)
    for kernel_us, expected in [(1.0, [2, 8, 128, 512]), (1000.0, [2, 8, 128]), (1e6, None)]:
        monkeypatch.setattr(
            verdicts, "measure", lambda *_, us=kernel_us, **__: Times(us, us, 0.9, 0.8, 0.9)
        )
        swept.clear()
        decision = list(verdicts.measured(RECORD, REQUEST))[-1]
        assert swept == ([expected] if expected else [])
        assert len(decision.points) == (len(expected) + 1 if expected else 1)


@pytest.mark.parametrize("is_new", [True, False])
def test_what_is_close_is_settled_in_the_caches_unless_a_verdict_stood(monkeypatch, is_new):
    settled = []

    def measure(*_, settle, fuses):
        settled.append(settle)
        return times(1.02)

    of_one_float(monkeypatch)
    monkeypatch.setattr(verdicts, "measure", measure)
    request = dataclasses.replace(REQUEST, in_shapes=((4, 8),), hint=())
    before = None if is_new else decide({1: times(0.5)}, 1)
    *_, decision = verdicts.measured(RECORD, request, before)
    assert settled == [is_new]
    assert decision.kernel_wins is not is_new

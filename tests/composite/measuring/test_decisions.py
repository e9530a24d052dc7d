"""From measured times to verdicts: what is close stays as it was."""

import json

import pytest

from composite.aot import prebuild
from composite.compiler.emit.timings import KernelTiming
from composite.measuring import decisions
from composite.measuring.decisions import Times, decide


def times(ratio, spread=0.01):
    return Times(10 * ratio, 10.0, ratio, ratio - spread, ratio + spread)


def wins(decision):
    return [point.kernel_wins for point in decision.points]


def test_each_size_has_its_verdict():
    decision = decide({8: times(0.5), 32: times(0.9), 128: times(1.3), 512: times(2)}, 32)
    assert wins(decision) == [True, True, False, False]
    assert [point.size for point in decision.points] == [8, 32, 128, 512]
    assert decision.times == times(0.9)
    assert decision.kernel_wins
    assert not decide({32: times(1.2), 128: times(1.3)}, 32).kernel_wins


def test_the_call_that_asked_is_decided_by_its_median():
    assert wins(decide({32: times(1.0)}, 32)) == [True]
    assert wins(decide({32: times(1.001)}, 32)) == [False]


@pytest.mark.parametrize("spread", [0.01, 0.4])
def test_a_close_size_is_as_its_neighbour_towards_the_call_that_asked(spread):
    close = [times(1.03, spread), times(0.97, spread)]
    if spread == 0.4:  # noise: a quarter of the rounds say the opposite
        close = [times(1.3, spread), times(0.7, spread)]
    for at_asked, expected in [(0.5, True), (2.0, False)]:
        for near in close:
            decision = decide({2: near, 8: near, 32: times(at_asked), 128: near}, 32)
            assert wins(decision) == [expected] * 4
    decision = decide({32: times(0.5), 128: times(2), 512: close[1]}, 32)
    assert wins(decision) == [True, False, False]


def test_a_verdict_stands_until_the_margin_is_passed():
    first = decide({32: times(0.99), 128: times(1.2)}, 32)
    again = decide({32: times(1.04), 128: times(0.96)}, 32, first)
    assert wins(again) == wins(first) == [True, False]
    assert again.times == times(1.04)
    other = decide({32: times(1.06), 128: times(0.9)}, 32, first)
    assert wins(other) == [False, True]
    # A size that was not measured before takes its neighbour's.
    assert wins(decide({8: times(1.02), 32: times(1.02)}, 32, first)) == [True, True]


def test_a_loss_on_a_busy_machine_is_doubtful():
    busy, calm = (times(1.5)._replace(disturbed=one) for one in (True, False))
    assert decide({32: times(0.5), 128: busy}, 32).doubtful
    assert not decide({32: times(0.5), 128: calm}, 32).doubtful
    assert not decide({32: times(0.5)._replace(disturbed=True)}, 32).doubtful


def test_text_and_back():
    decision = decide({8: times(0.5), 32: times(0.9), 128: times(1.3)}, 32)
    assert decisions.from_json(decisions.to_json(decision)) == decision
    text = decisions.to_json(decision)
    content = json.loads(text)
    for wrong in (
        b"",
        text[:-5],
        "[]",
        '{"kernel_us": 1.0, "expansion_us": 2.0, "ratio": 0.5}',  # of an earlier version
        json.dumps({**content, "asked": 9}),
        json.dumps({**content, "points": content["points"][::-1]}),
        json.dumps({**content, "points": [point[:-2] for point in content["points"]]}),
    ):
        assert decisions.from_json(wrong) is None


def test_a_library_that_is_built_again_keeps_close_verdicts():
    timing = KernelTiming(32, [8, 32], [5.0, 11.0], [10.0, 10.0], [True, False])
    before = prebuild.decisions_of({"k": timing})["k"]
    assert (before.asked, wins(before), before.times.ratio) == (32, [True, False], 1.1)
    assert wins(decide({8: times(1.03), 32: times(0.97)}, 32, before)) == [True, False]
    assert wins(decide({8: times(1.2), 32: times(0.5)}, 32, before)) == [False, True]

"""Random programs agree with Python; and a wrong compiler is caught by them.

`python -m tests.fuzz` runs more of them.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import zlib
from collections.abc import Iterator

import pytest
import tensorflow as tf

from tests.conftest import no_compiling
from tests.fuzz import run as runner
from tests.fuzz.program import Program, generate
from tests.fuzz.run import Verdict, run
from tests.fuzz.scope import Options
from tests.fuzz.shrink import shrink

COUNT, TENSORS, KERNELS = 150, 60, 20

# What the language refuses, and the generator does not avoid.
REFUSED = re.compile(
    "is assigned again after the function at line|would change the list in place"
    "|is read more than once"
)


@pytest.fixture
def _plain_graphs() -> Iterator[None]:
    before = tf.config.optimizer.get_experimental_options()
    runner.leave_graphs_alone()
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False} | before)


def told(program: Program, verdict: Verdict) -> str:
    return f"seed {program.seed}, {verdict.way}: {verdict.what}\n{program.text}"


def check(programs: Iterator[Program], ways: list[str], samples: int) -> collections.Counter[str]:
    kinds: collections.Counter[str] = collections.Counter()
    for program in programs:
        verdict = run(program, ways, samples=samples)
        kinds[verdict.kind] += 1
        assert verdict.kind != "differs", told(program, verdict)
        if verdict.kind == "refused":
            assert REFUSED.search(verdict.what), told(program, verdict)
        kinds["kernels"] += "kernel" in ways and not verdict.skipped
    return kinds


@pytest.mark.slow
@pytest.mark.usefixtures("_plain_graphs")
@pytest.mark.parametrize("tensors", [False, True])
def test_expansions(tensors: bool) -> None:
    options = Options(size=4, tensor_conditions=tensors)
    first, count = (50_000, TENSORS) if tensors else (0, COUNT)
    programs = (generate(seed, options) for seed in range(first, first + count))
    with no_compiling():
        kinds = check(programs, ["eager", "unknown dims"], samples=1)
    # The programs are worth something: most run, and few are refused.
    assert kinds["agrees"] > 0.6 * count and kinds["refused"] < 0.15 * count, kinds


@pytest.mark.slow
@pytest.mark.usefixtures("_plain_graphs", "kernels_win")
def test_kernels() -> None:
    options = Options(size=2, for_kernels=True)
    programs = (generate(seed, options) for seed in range(10**6, 10**6 + KERNELS))
    kinds = check(programs, ["kernel"], samples=1)
    assert kinds["kernels"] > 0.4 * KERNELS, kinds


def test_the_same_seed_is_the_same_program() -> None:
    assert generate(11, Options()) == generate(11, Options())
    assert generate(11, Options()).text != generate(12, Options()).text


def altered(body: str, seed: int) -> Program:
    """A program with this body."""
    program = generate(seed, Options())
    head = program.text[: program.text.index("def body(")]
    head = re.sub(r"outputs=\[.*\]", 'outputs=["o0: T"]', head)
    parameters = "xs, x, y, n, p, k, r, flag, s, ks, d"
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return dataclasses.replace(program, text=f"{head}def body({parameters}):\n{lines}")


def compile_instead(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles other programs than those that Python runs, as a wrong compiler would."""
    right = Program.define

    def wrong(self: Program, version: int = 0) -> object:
        op = right(dataclasses.replace(self, text=self.text.replace(old, new)), version)
        op._function = right(self, version + 10**6)._function
        return op

    monkeypatch.setattr(Program, "define", wrong)


def test_a_value_that_differs_is_found_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_instead("tf.tanh", "tf.sin", monkeypatch)
    body = "a = x * 2\nif flag:\n    a = a + y\nfor t in xs:\n    y = y + tf.tanh(t)\nreturn y - a"
    program = altered(body, 10**7)
    verdict = run(program, ["eager"])
    assert verdict.kind == "differs" and "off by" in verdict.what

    def same(candidate: Program, version: int) -> bool:
        return run(candidate, ["eager"], version).kind == "differs"

    small = shrink(program, same)
    assert "tf.tanh(" in small.text and len(small.text) < len(program.text)
    assert "if flag" not in small.text


def test_no_loop_becomes_endless_while_a_program_is_made_smaller() -> None:
    loop = ["    while c < k and add_up([1, c * 2]):", "        c += 1"]
    lines = ["    c = 0", *loop, "        x = -x"]
    text = "\n".join(["def body(x, k):", *lines, "    return x", ""])
    tried: list[str] = []

    def same(candidate: Program, _: int) -> bool:
        tried.append(candidate.text)
        return False

    shrink(dataclasses.replace(generate(1, Options()), text=text), same)
    loops = [one for one in tried if "while" in one]
    assert loops and len(loops) < len(tried)  # some are without the loop
    assert all("\n".join(loop) in one for one in loops)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("c = 1 // (k - k)\nreturn x", "dead error"),
        ("if 1 // (k - k):\n    c = 2\nreturn x", "dead error"),
        ("a = x * x[:k - k]\nreturn x if a.shape.rank + len(a.shape) == 4 else -x", "dead error"),
        ("a = x * x[:k - k]\nreturn x if a.shape[-1] == 3 else -x", "raises"),
        ("for t in x[0, 0]:\n    c = t\nreturn x", "dead error"),
        ("a = x * x[:k - k]\nreturn x if a.dtype == d else -x", "dead error"),
        (
            "a = (x if k == k else y) * x[:k - k]\nreturn -x if a.dtype == tf.int32 else x",
            "dead error",
        ),
        ("a = x * x[:k - k]\nreturn x if len([5 for d in a.shape]) == 2 else -x", "dead error"),
        ("a = [x * x[:k - k] + y]\nreturn -x if a[0].dtype == d else x", "dead error"),
        ("a = x * x[:k - k]\nreturn -x if a.shape else x", "dead error"),
        ("a = x + tf.stack([x, x], -1)[0]\nreturn x if a.shape[-1] == 2 else a", "dead error"),
        ("a = x + tf.stack([x, x], -1)[0]\nreturn x if a.shape[0] else a", "raises"),
        (
            "a = tf.reshape(x, [y.shape[0] + 9, 3])\nreturn x if a.shape[-1] == 3 else a",
            "dead error",
        ),
        (
            "z = tf.stack([x, x], axis=1)[k - k]\n"
            "return x if tf.where(p, y * x, z).shape[0] == 2 else z",
            "dead error",
        ),
        ("a, (b, c) = [[1, [2, 3]]][k + 9]\nreturn x", "dead error"),
        ("for a, b in [[ks, ks], [[ks, ks]][k + 9]]:\n    c = a\nreturn x", "dead error"),
        ("a, b = [[x, x]][k + 9]\nreturn x * a", "raises"),
        ("return x + 1 // (k - k)", "raises"),
        ("return x + 2**62 * 4", "limit"),
        ("c = 0\nif tf.reduce_any(x > 1e9):\n    c = 1\nreturn x * (c / c)", "limit"),
        ("c = 0\nif tf.reduce_any(x > 1e9):\n    c = 1\nreturn x * (c // c)", "raises"),
        ("return print(x)", "refused"),
        ("return x[k - k]", "agrees"),
        (
            "if tf.reduce_any(x > 1e9):\n    c = 1 // (k - k)\n    return x * c\nreturn x",
            "other path",
        ),
        # What raises first on the other path is dead.
        (
            "if tf.reduce_any(x > 1e9):\n    c = 1 // (k - k)\n    if 1 % (k - k) > 5:\n"
            "        x = -x\nreturn x",
            "other path",
        ),
        # The line that raises on the other path runs on Python's, too.
        (
            "if tf.reduce_any(x > 1e9):\n    x = x[:, :2]\nelif k > 9:\n    raise ValueError\n"
            "return x * tf.reduce_sum(x @ tf.transpose(xs[0]))",
            "other path",
        ),
        # Trips make `c` another number, and the run decides how many there are.
        (
            "c = 0\nwhile tf.reduce_any(x > 1e9):\n    c += 1\n    if c < 1:\n        x = x @ x\n"
            "return x",
            "other path",
        ),
        (
            "for i in range(3):\n    if i > 3:\n        x = x @ x\n    if tf.reduce_any(x > 1e9):\n"
            "        break\nreturn x",
            "other path",
        ),
        # The run decides what `c` is, and Python always returns `x`.
        (
            "c = 1\nif tf.reduce_any(x > 1e9):\n    c = 2\nif c > 0:\n    return x\nreturn x @ x",
            "other path",
        ),
    ],
)
def test_kinds(body: str, kind: str, request: pytest.FixtureRequest) -> None:
    seed = 2 * 10**7 + zlib.crc32(request.node.name.encode()) % 1000
    assert run(altered(body, seed)).kind == kind


def test_an_error_that_no_path_of_python_has_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_instead("tf.tanh(x)", "x @ x", monkeypatch)
    body = "if tf.reduce_any(x > 1e9):\n    return x[:, :2]\nreturn tf.tanh(x)"
    verdict = run(altered(body, 10**7 + 1), ["eager"])
    assert verdict.kind == "differs" and "MatMul" in verdict.what

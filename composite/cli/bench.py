"""`composite bench`: a call of an op beside TensorFlow's ways of doing the same.

Not for: nodes in a model, many shapes, other libraries; that is benchmarks/.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from composite.cli import calls

OURS = ("composite", "in a tf.function")
THEIRS = ("TF eager", "tf.function", "XLA")
_CHUNK_SECONDS = 2e-3  # long against the clock, short against a spell of noise
_LEAST_ROUNDS = 15


@click.command(short_help="Measure a call beside TensorFlow's ways.")
@click.argument("target", type=calls.TargetType(), metavar="FILE[:OP]")
@calls.options
@calls.device
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=3.0,
    show_default=True,
    help="How long to measure.",
)
@click.option("as_json", "--json", is_flag=True, help="Print the times as JSON.")
def bench(
    target: calls.Target, seconds: float, *, device: str | None, as_json: bool, **call: Any
) -> None:
    """Measure one call, in microseconds, beside TensorFlow's ways: eager, tf.function, XLA.

    \b
    Example:
      composite bench ops.py:dense --shape x=32,1024 --shape w=1024,1024 --shape b=1024

    The ways take turns, so that a slow spell of the machine hits all of them. Calls on a GPU are
    measured until it has done all of them.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    op = target.one()
    with calls.placed(device):
        inputs, attrs = calls.tensors(op, calls.CallOptions(**call))
        op(*inputs, **attrs)
        composite.wait()  # for the kernel, which is measured as calls find it
        path = composite.explain(op, *inputs, **attrs)
        times = measure(ways(op, inputs, attrs), seconds)
    medians = {way: _quantile(values, 0.5) for way, values in times.items()}
    best = min((medians[way] for way in THEIRS if way in medians), default=None)
    if as_json:
        answer = {
            "op": op.op_name,
            "target": path.details.get("target", ""),
            "path": path.path,
            "reason": path.reason,
            "microseconds": {
                way: {"median": medians[way], "least": min(values), "rounds": len(values)}
                for way, values in times.items()
            },
        }
        click.echo(json.dumps(answer, indent=1))
        return
    _print(f"{op.op_name}: {path.path}; {path.reason}", times, best)


def ways(op: Any, inputs: list[Any], attrs: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """The ways to make a call, by name; an op of a built library has no Python function."""
    import tensorflow as tf

    def ours(*tensors: Any) -> Any:
        return op(*tensors, **attrs)

    found = {OURS[0]: lambda: ours(*inputs), OURS[1]: _traced(ours, inputs)}
    if not hasattr(op, "python_function"):
        return found
    given = [attrs.get(attr.name, attr.default) for attr in op.schema.attrs]

    def theirs(*tensors: Any) -> Any:
        return op.python_function(*tensors, *given)

    found[THEIRS[0]] = lambda: theirs(*inputs)
    found[THEIRS[1]] = _traced(theirs, inputs)
    try:
        compiled = _traced(theirs, inputs, jit_compile=True)
        compiled()
    except tf.errors.OpError as error:
        click.echo(f"XLA does not compile it: {error.message.splitlines()[0]}", err=True)
    else:
        found[THEIRS[2]] = compiled
    return found


def _traced(function: Callable[..., Any], inputs: list[Any], **options: Any) -> Callable[[], Any]:
    """One traced tf.function, called without the checks for another trace."""
    import tensorflow as tf

    concrete = tf.function(function, **options).get_concrete_function(*inputs)
    flat = tf.nest.flatten(inputs)
    return lambda: concrete(*flat)


def measure(functions: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Microseconds of a call of each function, for each of several rounds."""
    repeats = {name: _repeats(run) for name, run in functions.items()}
    times: dict[str, list[float]] = {name: [] for name in functions}
    names = list(functions)
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < _LEAST_ROUNDS or time.perf_counter() < end:
        # Another order each round: who follows whom decides what the caches hold.
        for name in names[rounds % len(names) :] + names[: rounds % len(names)]:
            times[name].append(_chunk(functions[name], repeats[name]) * 1e6)
        rounds += 1
    return times


def _repeats(run: Callable[[], Any]) -> int:
    for _ in range(3):
        run()
    return max(1, int(_CHUNK_SECONDS / _chunk(run, 1)))


def _chunk(run: Callable[[], Any], repeats: int) -> float:
    import tensorflow as tf

    start = time.perf_counter()
    for _ in range(repeats):
        results = run()
    for one in tf.nest.flatten(results):
        if "GPU" in one.device:  # whose calls return before they are done
            one.numpy()
    return (time.perf_counter() - start) / repeats


def _quantile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[round(part * (len(ordered) - 1))]


def _print(title: str, times: Mapping[str, list[float]], best: float | None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("way", no_wrap=True)
    for column in ("us a call", "quartiles", "of TF's best"):
        table.add_column(column, justify="right", no_wrap=True)
    for way, values in times.items():
        low, median, high = (_quantile(values, part) for part in (0.25, 0.5, 0.75))
        ratio = f"{median / best:.2f}" if best else ""
        table.add_row(way, f"{median:.1f}", f"{low:.1f} - {high:.1f}", ratio)
    console = Console()
    console.print(title, markup=False, soft_wrap=True)
    console.print(table)

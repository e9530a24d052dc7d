"""Programs, drawn by seed, that share memory in each way that TensorFlow and NumPy have.

A program draws what it does next by the objects that there are, which both sides have alike.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import composite
from tests.sharing.sides import PARTS, ROWS, SIZE, Side, aligned, graph_of, op_of

_PROGRAMS = 3  # with the same op
_SQUARE = [SIZE, SIZE]
_MOST = 32  # objects
_CALLS = 160  # in a row, of which the last ones find all at rest


class Program:
    """A program that both sides run, step by step."""

    def __init__(self, seed: int, sides: tuple[Side, Side], folder: Path) -> None:
        """Without objects."""
        self._draw = np.random.default_rng(seed)
        self._sides, self._folder = sides, folder
        self._seed, self._number = seed, 0
        self.log: list[str] = []
        self._last: list[str] = []  # the weights of the last eager calls
        self.results: list[tuple[Any, Any]] = []  # of calls, ours first
        number = seed // _PROGRAMS
        for side in sides:
            side.op, side.graph = op_of(number), graph_of(number)
            side.objects.clear()
        self.make_tensor()
        self.make_variable()

    def step(self) -> None:
        """Does one thing, drawn from all that can be done."""
        self.results.clear()
        while len(self._sides[0].objects) > _MOST:
            self.drop()
        if self._draw.random() < 0.4 and {*self._last} <= {*self._sides[0].objects}:
            self._call_dense(self._last, 2 * len(self._last))  # what was packed, after a write
        acts: list[Callable[[], object]] = [
            *[self.make_tensor, self.make_parts, self.make_view, self.make_array] * 2,
            *[self.make_variable, self.assign, self.assign_part, self.export, self.write] * 2,
            *[self.descend, self.momentum, self.follow, self.call_in_turn, self.call_graph] * 3,
            *[self.drop, self.hold, self.restore, self.scatter, self.in_threads],
            *[self.make_variables, self.call_parts_in_turn] * 3,
        ]
        acts[self._draw.integers(len(acts))]()

    # ---- objects ---------------------------------------------------------------------------------

    def make_tensor(self) -> None:
        """Of memory of its own, in parts or not."""
        shape = [PARTS, *_SQUARE] if self._draw.random() < 0.5 else _SQUARE
        self._add("tensor", lambda _: tf.random.stateless_normal(shape, [self._seed, self._number]))

    def make_parts(self) -> list[str]:
        """Of a tensor that has parts, all or one."""
        if (name := self._one(_has_parts)) is None:
            return []
        ways: list[Callable[[Any], Any]] = [
            tf.unstack,
            lambda t: [tf.reshape(one, _SQUARE) for one in tf.split(t, PARTS)],
            lambda t: [t[1]],
            lambda t: [tf.reshape(t[1:2], _SQUARE), t[2]],
        ]
        way = ways[self._draw.integers(len(ways))]
        count = len(way(self._sides[0].objects[name]))
        return [self._add("part", _part(way, name, i)) for i in range(count)]

    def make_view(self) -> None:
        """The same numbers, as other objects."""
        if (name := self._square()) is None:
            return
        ways: list[Callable[[Any], Any]] = [
            tf.identity,
            lambda t: tf.reshape(tf.reshape(t, [-1]), _SQUARE),
            tf.convert_to_tensor,
            lambda t: tf.transpose(t, [1, 0]),
        ]
        way = ways[self._draw.integers(len(ways))]
        self._add("view", lambda side: way(side.objects[name]))

    def make_array(self) -> None:
        """An array of NumPy's with tensors that share it, and of its parts."""
        values = self._draw.standard_normal([PARTS, *_SQUARE]).astype(np.float32)

        def make(_: Side) -> Any:
            array = aligned(values.shape)
            array[:] = values
            return array

        whole = self._add("array", make)
        chosen = int(self._draw.integers(PARTS))

        def share(side: Side) -> Any:
            return tf.experimental.dlpack.from_dlpack(side.objects[whole][chosen].__dlpack__())

        self._add("shared", share)
        self._add("constant", lambda side: tf.constant(side.objects[whole][0]))

    def make_variable(self) -> None:
        """Of another one, of a tensor, or of memory of its own."""
        if (name := self._square()) is None or self._draw.random() < 0.2:
            self._add("variable", lambda _: tf.Variable(tf.zeros(_SQUARE)))
        else:
            self._add("variable", lambda side: tf.Variable(side.objects[name]))

    def make_variables(self) -> None:
        """Of the parts of a tensor, which nobody else has."""
        if (name := self._one(_has_parts)) is None:
            return
        for i in range(int(self._draw.integers(1, PARTS + 1))):
            self._add("variable", _part(lambda t: [*map(tf.Variable, tf.unstack(t))], name, i))

    def export(self) -> None:
        """An array of NumPy's of what a tensor holds."""
        if (name := self._one(_is_tensor)) is None:
            return
        way = np.asarray if self._draw.random() < 0.5 else np.from_dlpack
        self._add("export", lambda side: way(side.objects[name]))

    def hold(self) -> None:
        """What a variable holds, by a tensor that stays."""
        if (name := self._variable()) is None:
            return
        whole = bool(self._draw.random() < 0.7)

        def read(side: Side) -> Any:
            value = side.objects[name].read_value()
            return value if whole else value[1]

        self._add("held", read)

    def drop(self) -> None:
        """Gives memory back, which others then get."""
        names = list(self._sides[0].objects)
        for name in self._draw.choice(names, min(len(names) - 2, 4), replace=False):
            self.log.append(f"del {name}")
            for side in self._sides:
                del side.objects[name]

    # ---- writes ----------------------------------------------------------------------------------

    def write(self) -> None:
        """To an array, whoever shares it."""
        if (name := self._one(lambda one: isinstance(one, np.ndarray))) is None:
            return
        self.log.append(f"write {name}")
        part = int(self._draw.integers(PARTS))
        for side in self._sides:
            if side.objects[name].flags.writeable:
                side.objects[name][part] *= -0.5

    def assign(self) -> None:
        """A tensor, or what another variable holds."""
        if (name := self._variable()) is None or (value := self._square()) is None:
            return
        self.log.append(f"{name}.assign({value})")
        for side in self._sides:
            side.objects[name].assign(side.objects[value])

    def assign_part(self) -> None:
        """To some rows of a variable."""
        if (name := self._variable()) is None:
            return
        self.log.append(f"{name}[3:5].assign")
        for side in self._sides:
            side.objects[name][3:5].assign(tf.ones([2, SIZE]))

    def scatter(self) -> None:
        """A sparse update, after which the variable is copied where it is read."""
        if (name := self._variable()) is None:
            return
        self.log.append(f"{name}.scatter_nd_add")
        for side in self._sides:
            side.objects[name].scatter_nd_add([[1], [7]], tf.ones([2, SIZE]))

    def restore(self) -> None:
        """By a checkpoint."""
        if (name := self._variable()) is None or (value := self._square()) is None:
            return
        self.log.append(f"restore {name} to {value}")
        for side in self._sides:
            side.restore(side.objects[name], side.objects[value], self._folder)

    # ---- calls -----------------------------------------------------------------------------------

    def descend(self) -> None:
        """Some steps of an optimizer."""
        self._call("descend", variables=1, times=int(self._draw.integers(1, 4)), with_x=True)

    def momentum(self) -> None:
        """Some steps of another one."""
        times = int(self._draw.integers(1, 4))
        self._call("descend_with_momentum", variables=2, times=times, with_x=True)

    def follow(self) -> None:
        """An update of a target network."""
        self._call("follow", variables=2, times=1)

    def call_graph(self) -> None:
        """Variables that rest, or do not yet."""
        self._call("layers", variables=2, times=int(self._draw.choice([2, _CALLS])), first_x=True)

    def call_in_turn(self) -> None:
        """An eager layer with some tensors as weights."""
        names = self._several()
        if names:
            self._call_dense(names, int(self._draw.choice([2, _CALLS])))

    def call_parts_in_turn(self) -> None:
        """Layers whose weights are one tensor."""
        if names := self.make_parts():
            self._call_dense(names, _CALLS)

    def in_threads(self) -> None:
        """The same by several threads."""
        names = self._several()
        if not names:
            return
        threads = [threading.Thread(target=self._call_dense, args=(names, 30)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _call_dense(self, names: list[str], times: int) -> None:
        in_graph = self._draw.random() < 0.5
        self.log.append(f"{times} calls of dense with {names}{' in a graph' if in_graph else ''}")
        self._last = names
        ours = self._sides[0].dense_in_graph if in_graph else self._sides[0].dense
        x = self._x()
        plain = {name: self._sides[1].dense(x, self._sides[1].objects[name]) for name in names}
        for number in range(times):
            if number in (_CALLS // 4, _CALLS // 2):
                composite.wait()
            name = names[number % len(names)]
            result = ours(x, self._sides[0].objects[name])
            self.results.append((result, plain[name]))

    def _call(
        self, function: str, variables: int, times: int, with_x: bool = False, first_x: bool = False
    ) -> None:
        there = [n for n, v in self._sides[0].objects.items() if isinstance(v, tf.Variable)]
        if len(there) < variables:
            return
        names = list(self._draw.choice(there, variables, replace=False))
        self.log.append(f"{times} calls of {function} with {names}")
        x = [self._x()]
        for _ in range(times):
            results = [
                side.call(
                    function,
                    *(x if first_x else []),
                    *[side.objects[name] for name in names],
                    *(x if with_x else []),
                )
                for side in self._sides
            ]
            if results[0] is not None:
                self.results.append((results[0], results[1]))

    # ---- what is drawn ---------------------------------------------------------------------------

    def _x(self) -> Any:
        return tf.random.stateless_normal([ROWS, SIZE], [self._seed, len(self.log)])

    def _add(self, kind: str, make: Callable[[Side], Any]) -> str:
        self._number += 1
        name = f"{kind}{self._number}"
        self.log.append(name)
        for side in self._sides:
            side.objects[name] = make(side)
        return name

    def _one(self, suits: Callable[[Any], bool]) -> str | None:
        names = [name for name, one in self._sides[0].objects.items() if suits(one)]
        return str(self._draw.choice(names)) if names else None

    def _square(self) -> str | None:
        return self._one(_is_square)

    def _variable(self) -> str | None:
        return self._one(lambda one: isinstance(one, tf.Variable))

    def _several(self) -> list[str]:
        names = [name for name, one in self._sides[0].objects.items() if _is_square(one)]
        if not names:
            return []
        count = int(self._draw.integers(1, min(len(names), 5) + 1))
        return [str(name) for name in self._draw.choice(names, count, replace=False)]


def _is_tensor(one: Any) -> bool:
    return tf.is_tensor(one) and not isinstance(one, tf.Variable)


def _part(way: Callable[[Any], Any], name: str, i: int) -> Callable[[Side], Any]:
    return lambda side: way(side.objects[name])[i]


def _has_parts(one: Any) -> bool:
    return _is_tensor(one) and len(one.shape) == 3


def _is_square(one: Any) -> bool:
    return not isinstance(one, np.ndarray) and list(one.shape) == _SQUARE

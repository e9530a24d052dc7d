"""From a TF function to an object file: read, plan, write the loops, generate code.

Code generation is :mod:`.machine_code`'s part, linking :mod:`.link`'s. One call is one kernel;
nothing is kept between calls.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from composite.compiler import account
from composite.compiler.tvm import machine_code
from composite.compiler.tvm.choices import Choices, Chosen, Knob, Value
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.constants import Constants, Packed
from composite.compiler.tvm.plan.in_place import Forwards, forwards, readers_first
from composite.compiler.tvm.plan.plan import Plan, make_plan
from composite.compiler.tvm.proof import Proof, guarded, prove, telling
from composite.compiler.tvm.read.reader import read_function
from composite.compiler.tvm.schedule import Schedule
from composite.compiler.tvm.target import Target

_GUARDED = "_guarded"

_MOST_GUARDS = 1000
"""Accesses that are guarded: LLVM takes minutes for the branches of more."""

OUT_OF_RANGE = b"IndexError"  # the kind of the errors that kernels have for such an index
_BARRIER = b"__TVMBackendParallelBarrier"  # the slot that an object has if its code meets there


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel, not yet linked.

    Attributes:
        name: Base of its C symbol ``__tvm_ffi_<name>``.
        objects: Object files by name.
        out_shapes: For each output its dimensions joined by commas, each in postfix tokens.
        minimums: For each symbol the least value that the kernel is right for.
        divisors: For each symbol a number that must divide it.
        strategy: Which strategies wrote its stages, in order.
        target: What it was compiled for.
        proof: That its accesses are right for all sizes, or which of them are not proven; then
            the objects have it a second time, with guards: see `guarded`.
        packed: What it takes after its outputs: constant factors, packed once by functions of
            their own, ``__tvm_ffi_<name>_pack<i>(input, packed)``.
        forwards: For each output the inputs in whose memory it may lie; empty if none has one.
        choices: What was chosen for it, by the names of the knobs.
        telling: Sizes, each a list of a value for each symbol, that together take every branch of
            its loops that calls of few elements can take.
        ring_programs: The programs of its loops over the ring, see :mod:`.algebra`; empty if there
            are none, or nobody asked.
        no_ring_programs: Why there are none; "" if there are, or nobody asked.
    """

    name: str
    objects: dict[str, bytes] = field(repr=False)
    out_shapes: list[str]
    minimums: list[int]
    divisors: list[int]
    strategy: str
    target: Target
    proof: Proof
    packed: tuple[Packed, ...] = ()
    choices: Chosen = field(default_factory=dict)
    forwards: list[list[int]] = field(default_factory=list)
    telling: list[list[int]] = field(default_factory=list)
    ring_programs: bytes = field(default=b"", repr=False)
    no_ring_programs: str = ""

    @property
    def guarded(self) -> str:
        """The name of the same kernel with its accesses guarded; "" if all of them are proven."""
        return "" if self.proof.is_complete else self.name + _GUARDED

    @property
    def may_refuse(self) -> bool:
        """Whether it ends calls of some inputs with an error; then TensorFlow's ops serve them."""
        return any(OUT_OF_RANGE in data for data in self.objects.values())

    def reads(self, number: int) -> bool:
        """Whether it may load elements of an input, of which it needs the shape in any case."""
        return self.proof.loads is None or f"in{number}" in self.proof.loads

    @property
    def barriers(self) -> bool:
        """Whether threads meet in a loop of it, which then needs a team of them."""
        return any(_BARRIER in data for data in self.objects.values())


def compile(  # noqa: A001, PLR0913 - named as re.compile is; all that a kernel depends on
    library_def: Any,
    in_shapes: Sequence[Sequence[int | str]],
    *,
    target: Target | None = None,
    name: str = "kernel",
    sizes: Sequence[int] = (),
    constants: Sequence[int] = (),
    choices: Chosen = MappingProxyType({}),
) -> Kernel:
    """Compile ``library_def.function[0]`` for a shape class.

    Args:
        library_def: A ``tensorflow.FunctionDefLibrary``; dtypes concrete, inputs flat.
        in_shapes: One shape an input; a dimension is an int or a symbol such as ``"s0"``.
        target: The machine; this one by default.
        name: A C identifier, unique among the kernels that are linked together.
        sizes: Inputs whose values are sizes, see `read_function`.
        constants: Inputs whose elements are the same in every call, so that they may be packed
            once. They are inputs of the kernel all the same.
        choices: Values of knobs, where they are not to be the strategies' own; see `write`.

    Raises:
        NotCovered: If the op table, a dtype or a shape does not allow a kernel, with the inputs
            whose values would have to be sizes if that is all; or if there are constants and none
            would be packed: the kernel without constants is the same.
        ValueError: If the number of shapes is not the number of inputs, or a choice is none of
            this kernel's.
    """
    _check_name(name)
    written = write(
        library_def, in_shapes, target=target, sizes=sizes, constants=constants, choices=choices
    )
    wrong = [n for n, value in choices.items() if written.choices.get(n) != value]
    if wrong:
        there = "; ".join(f"{k.name}: {', '.join(map(str, k.candidates))}" for k in written.knobs)
        raise ValueError(
            f"{wrong[0]}={choices[wrong[0]]!r} is no choice of this kernel; there are {there}"
        )
    return written.generate(name)


def write(  # noqa: PLR0913 - as compile
    library_def: Any,
    in_shapes: Sequence[Sequence[int | str]],
    *,
    target: Target | None = None,
    sizes: Sequence[int] = (),
    constants: Sequence[int] = (),
    choices: Chosen = MappingProxyType({}),
) -> Written:
    """Write the loops of a kernel, as `compile` does, and generate no code yet.

    ``choices`` that this kernel does not have are left out, and those that are no candidates; what
    was chosen is in the result.
    """
    target = target or Target.host()
    try:
        with account.step("read"):
            function = read_function(library_def, in_shapes, sizes)
        with account.step("plan"):
            plan = make_plan(function)
        with account.step("schedule"):
            module = make_module(plan, target, "kernel", frozenset(constants), Choices(choices))
    except RecursionError:
        raise NotCovered("a chain of element-wise ops is too long to be one kernel") from None
    if constants and not module.packed:
        raise NotCovered("its constants are read where they lie")
    return Written(plan, target, module)


@dataclass(frozen=True)
class Written:
    """A kernel in loops.

    Attributes:
        plan: What it computes.
        target: What for.
        module: The loops.
    """

    plan: Plan
    target: Target
    module: Module

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """What there was to choose."""
        return self.module.choices.knobs

    @property
    def choices(self) -> dict[str, Value]:
        """What was chosen."""
        return self.module.choices.settled

    @property
    def schedule(self) -> Schedule:
        """How its stages are written."""
        return self.module.schedule

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the loops, 16 hex digits: equal ones are the same kernel."""
        import tvm_ffi

        parts = [str(tvm_ffi.structural_hash(f)) for f in self.module.functions.values()]
        return hashlib.sha256(" ".join([*parts, self.target.key]).encode()).hexdigest()[:16]

    @functools.cached_property
    def proof(self) -> Proof:
        """What is proven of the loops; see docs/proofs.md."""
        with account.step("prove"):
            return prove(self.module.functions, self.plan.function.minimums)

    def generate(self, name: str, *, over_ring: bool = False) -> Kernel:
        """Generate the code, under a name that is a C identifier; ValueError for another.

        What is not proven is there a second time, with its accesses guarded; NotCovered where they
        are too many. `over_ring`: with its programs over the ring. Loops are proven, and these
        programs written, while LLVM works.
        """
        _check_name(name)
        plan, module = self.plan, self.module
        with machine_code.begun(module.named(name), self.target) as code:
            guards = self._guarded(name)
            programs, why_none = self._ring_programs(name) if over_ring else (b"", "")
            sizes = self.telling()
            symbols = dims.symbols_of(t.shape for t in plan.function.parameters)
            return Kernel(
                name=name,
                objects={**code(), **guards},
                out_shapes=[dims.shape_text(t.shape) for t in plan.function.outputs],
                minimums=[plan.function.minimums.get(s, 0) for s in symbols],
                divisors=[1] * len(symbols),
                strategy="+".join(module.strategies.values()),
                target=self.target,
                proof=self.proof,
                packed=tuple(module.packed),
                choices=self.choices,
                forwards=[list(inputs) for inputs in module.forwards],
                telling=sizes,
                ring_programs=programs,
                no_ring_programs=why_none,
            )

    def _guarded(self, name: str) -> dict[str, bytes]:
        """The object files of the kernel with guards; none if all of its accesses are proven."""
        if self.proof.is_complete:
            return {}
        if len(self.proof.unproven) > _MOST_GUARDS:
            raise NotCovered(
                f"{len(self.proof.unproven)} accesses are not proven to be in bounds, more than"
                f" can be guarded ({_MOST_GUARDS}): the first is {self.proof.unproven[0]}"
            )
        own = guarded(self.module.named(name + _GUARDED), self.plan.function.minimums)
        with account.step("generate"):
            return machine_code.objects(own, self.target)

    def ring_programs(self, name: str) -> bytes:
        """Return the programs of the same loops over the ring. NotCovered if there are none."""
        from composite.compiler.tvm.algebra.kernel import in_ring

        with account.step("algebra"):
            return in_ring(self.module.named(name), self.module.stand_ins)

    def _ring_programs(self, name: str) -> tuple[bytes, str]:
        """The programs over the ring, or why there are none."""
        try:
            return self.ring_programs(name), ""
        except NotCovered as answer:
            return b"", str(answer)

    def telling(self, known: Sequence[Mapping[str, int]] = ()) -> list[list[int]]:
        """Return sizes that take each branch of the loops which no known sizes take."""
        (kernel, *_) = self.module.functions.values()
        symbols = dims.symbols_of(t.shape for t in self.plan.function.parameters)
        with account.step("prove"):
            found = telling([kernel], self.plan.function.minimums, known)
        return [[sizes[s] for s in symbols] for sizes in found]


@dataclass(frozen=True)
class Module:
    """TIR functions by their symbols, the kernel first, and how it was made.

    ``strategies`` are those of its stages, by their numbers; ``stand_ins`` what stands over the
    ring for parts of them, see :mod:`.tir.stand_ins`.
    """

    functions: dict[str, Any]
    strategies: dict[int, str]
    packed: list[Packed]
    choices: Choices
    stand_ins: Any
    forwards: Forwards = ()

    @property
    def schedule(self) -> Schedule:
        """How its stages are written."""
        return Schedule.of(self.strategies, self.choices.settled)

    def named(self, name: str) -> dict[str, Any]:
        """Return the functions under another name of the kernel."""
        (old, *_) = self.functions
        symbols = {symbol: name + symbol.removeprefix(old) for symbol in self.functions}
        return {
            symbols[symbol]: f.with_attr("global_symbol", symbols[symbol])
            for symbol, f in self.functions.items()
        }


def make_module(
    plan: Plan,
    target: Target,
    name: str,
    constants: frozenset[int] = frozenset(),
    choices: Choices | None = None,
) -> Module:
    """Return the TIR of a plan: the kernel, and what packs its constants."""
    known, choices = Constants(constants), choices or Choices()
    from composite.compiler.tvm.tir.block import Block

    block = Block()
    function, strategies, in_place = _kernel(plan, target, known, choices, block)
    functions = {name: function.with_attr("tirx.noalias", not in_place)}
    for i, pack_function in enumerate(known.functions):
        functions[f"{name}_pack{i}"] = pack_function().with_attr("tirx.noalias", True)
    named = {symbol: f.with_attr("global_symbol", symbol) for symbol, f in functions.items()}
    return Module(named, strategies, known.packed, choices, block.stand_ins, in_place)


def _kernel(
    plan: Plan, target: Target, constants: Constants, choices: Choices, block: Any
) -> tuple[Any, dict[int, str], Forwards]:
    """Return the TIR function of a plan, the strategies of its stages, and what it forwards."""
    from tvm import tirx

    from composite.compiler.tvm.codegen.access import Space, Storage
    from composite.compiler.tvm.codegen.argument import declare_argument
    from composite.compiler.tvm.strategy import joined_stages, strategies_of
    from composite.compiler.tvm.strategy.context import Context, InPlaceWriter
    from composite.compiler.tvm.strategy.temporaries import Temporaries
    from composite.compiler.tvm.tir.block import symbol_vars

    symbols = symbol_vars(dims.symbols_of(t.shape for t in plan.function.parameters))
    space = Space({}, symbols)
    listed = strategies_of(target.device)
    context = Context(block, space, plan, target, listed, constants, choices=choices)
    parameters = []
    for i, tensor in enumerate(plan.function.parameters):
        buffer, flat = declare_argument(block, space, tensor, f"in{i}")
        space.parameters[i] = Storage(flat, tensor.dtype)
        parameters.append(buffer)
    for i, (tensor, target_tensor) in enumerate(
        zip(plan.function.outputs, plan.outputs, strict=True)
    ):
        buffer, flat = declare_argument(block, space, tensor, f"out{i}")
        space.storages[target_tensor] = Storage(flat, tensor.dtype)
        parameters.append(buffer)
    strategies: dict[int, str] = {}
    nothing: Forwards = ((),) * len(plan.outputs)
    in_place = nothing
    stages = readers_first(plan, joined_stages(context))
    temporaries = Temporaries(stages, context)
    allowed = forwards(plan, stages)
    for number, stage in enumerate(stages):
        temporaries.give(stage)
        if 0 in stage.shape:
            continue  # nothing to compute
        own = replace(context, scope=f"{number}.", forwards=allowed[number])
        strategy, writer = own.match(stage)
        strategies[number] = strategy.name
        checks = block.checks
        writer.write()
        taken = writer.forwards if isinstance(writer, InPlaceWriter) else nothing
        # A call whose kernel fails runs the expansion, which needs the inputs.
        in_place = nothing if block.checks > checks else _joined(in_place, taken)
        temporaries.take_back(number)
    function = tirx.PrimFunc([*parameters, *constants.parameters], block.finish())
    return function, strategies, in_place if any(in_place) else ()


def _joined(some: Forwards, others: Forwards) -> Forwards:
    """Return what the outputs of some stages may take over, and those of others."""
    return tuple(a or b for a, b in zip(some, others or some, strict=True))


def _check_name(name: str) -> None:
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"{name!r} is no C identifier")

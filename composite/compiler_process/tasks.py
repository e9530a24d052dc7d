"""What the compiler is asked for, and what it answers, as Python has it and as messages.

Needs neither TensorFlow nor TVM, because both sides read it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from composite.compiler.tvm import Chosen, Kernel, Knob, LinkError, NotCovered, Target, Value
from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.cuda.launch import LaunchPlan
from composite.compiler.tvm.cuda.nvrtc import NvrtcError
from composite.compiler.tvm.ir.constants import Packed
from composite.compiler.tvm.proof import Proof, Unproven
from composite.compiler.tvm.target import CudaTarget
from composite.compiler_process.messages import Message

_ELSEWHERE = (
    "objects",
    "packed",
    "proof",
    "ring_programs",
    "target",
)  # fields of a Kernel that JSON does not hold as such
_OF_GPUS = ("name", "source", "out_shapes", "minimums", "strategy")  # of a CudaKernel, as they are
_RAISED = {kind.__name__: kind for kind in (NotCovered, LinkError, NvrtcError)}
_TARGETS: dict[str, type[Target]] = {"cpu": Target, "cuda": CudaTarget}  # by device


class CompilerError(RuntimeError):
    """The compiler raised what it should not have: its kind and message in one line.

    Attributes:
        trace: where, in the compiler's own lines.
    """

    def __init__(self, summary: str, trace: str = "") -> None:
        super().__init__(summary)
        self.trace = trace


@dataclass(frozen=True)
class Task:
    """A kernel to write, and to compile if it has a name.

    Attributes:
        function: the serialized FunctionDefLibrary.
        schema: the FileDescriptorSet that declares it: the compiler's process has no TensorFlow.
        in_shapes: one an input; a text is a symbol.
        target: the machine; of a GPU, whose kernels have no object files.
        sizes: the inputs whose values are sizes, see `read_function`.
        constants: the inputs that never change.
        choices: values of knobs.
        name: a C identifier; "" asks for the loops alone.
        link: a library is wanted, or machine code for a GPU.
        runtime: the library that it names as needed; "": none.
        over_ring: its programs over the ring are wanted, too.
    """

    function: bytes = field(repr=False)
    schema: bytes = field(repr=False)
    in_shapes: Sequence[Sequence[int | str]]
    target: Target
    sizes: Sequence[int] = ()
    constants: Sequence[int] = ()
    choices: Chosen = field(default_factory=dict)
    name: str = ""
    link: bool = False
    runtime: str = ""
    over_ring: bool = False

    def message(self) -> Message:
        """The task as it is sent."""
        facts = {
            "in_shapes": [list(shape) for shape in self.in_shapes],
            "device": self.target.device,
            "target": dataclasses.asdict(self.target),
            "sizes": list(self.sizes),
            "constants": list(self.constants),
            "choices": dict(self.choices),
            "name": self.name,
            "link": self.link,
            "runtime": self.runtime,
            "over_ring": self.over_ring,
        }
        return Message(facts, [self.function, self.schema])

    @classmethod
    def of(cls, message: Message) -> Task:
        """The task of a message."""
        function, schema = message.data
        facts = {**message.facts}
        facts["target"] = _TARGETS[facts.pop("device")].read(facts["target"])
        return cls(function, schema, **facts)


class Loops(NamedTuple):
    """The loops of a kernel: a hash of them, and what there was to choose and was chosen."""

    digest: str
    knobs: Sequence[Knob]
    choices: dict[str, Value]


class Made(NamedTuple):
    """What became of a task: what it did not ask for is None."""

    loops: Loops
    kernel: Kernel | CudaKernel | None = None
    library: bytes | None = None

    def message(self) -> Message:
        """The answer as it is sent."""
        knobs = [[knob.name, list(knob.candidates), knob.default] for knob in self.loops.knobs]
        facts: dict[str, Any] = {"loops": [self.loops.digest, knobs, dict(self.loops.choices)]}
        data: list[bytes] = []
        if isinstance(self.kernel, CudaKernel):
            named = {name: getattr(self.kernel, name) for name in _OF_GPUS}
            facts["cuda"] = {**named, "plan": self.kernel.plan.fields()}
        elif self.kernel is not None:
            own = {f.name: getattr(self.kernel, f.name) for f in dataclasses.fields(Kernel)}
            facts["kernel"] = {n: value for n, value in own.items() if n not in _ELSEWHERE}
            facts["kernel"]["choices"] = dict(self.kernel.choices)
            facts["proof"] = dataclasses.asdict(self.kernel.proof)
            facts["packed"] = [dataclasses.astuple(one) for one in self.kernel.packed]
            facts["objects"] = list(self.kernel.objects)
            data += self.kernel.objects.values()
            data += [self.kernel.ring_programs] if self.kernel.ring_programs else []
        if self.library is not None:
            data.append(self.library)
        return Message(facts, data)


def failed(error: Exception, trace: str) -> Message:
    """The answer when a task cannot be done."""
    kind = type(error).__name__
    facts: dict[str, Any] = {"error": kind, "text": str(error), "trace": trace}
    if isinstance(error, NotCovered):
        facts |= {"sizes": list(error.sizes), "node": error.node}
    return Message(facts)


def with_steps(answer: Message, steps: Mapping[str, float]) -> Message:
    """The answer with how many seconds its steps took."""
    return Message({**answer.facts, "steps": dict(steps)}, answer.data)


def steps_of(answer: Message) -> dict[str, float]:
    """How many seconds the steps of an answer took, by their names."""
    return {name: float(seconds) for name, seconds in answer.facts.get("steps", {}).items()}


def is_unforeseen(answer: Message) -> bool:
    """Whether it says that the compiler raised what it should not have."""
    return "error" in answer.facts and answer.facts["error"] not in _RAISED


def answered(task: Task, message: Message) -> Made:
    """What a message says of a task. Raises NotCovered and LinkError; CompilerError for others."""
    facts = message.facts
    if "error" in facts:
        kind, text = facts["error"], facts["text"]
        if kind == NotCovered.__name__:
            raise NotCovered(text, sizes=facts["sizes"], node=facts["node"])
        if kind == LinkError.__name__:
            raise LinkError(text)
        raise CompilerError(" ".join(f"{kind}: {text}".split()), facts["trace"])
    digest, knobs, choices = facts["loops"]
    loops = Loops(digest, tuple(Knob(n, tuple(c), default) for n, c, default in knobs), choices)
    library = message.data[-1] if task.link and message.data else None
    if "cuda" in facts:
        assert isinstance(task.target, CudaTarget), "it was asked for"
        own = facts["cuda"]
        plan = LaunchPlan.of(own.pop("plan"))
        found = CudaKernel(**own, plan=plan, target=task.target, knobs=tuple(loops.knobs))
        return Made(loops, found, library)
    if "kernel" not in facts:
        return Made(loops)
    objects = dict(zip(facts["objects"], message.data, strict=False))
    packed = tuple(Packed(*one) for one in facts["packed"])
    number = len(objects) + bool(task.link)
    ring_programs = message.data[len(objects)] if len(message.data) > number else b""
    unproven = tuple(Unproven(**one) for one in facts["proof"].pop("unproven"))
    loads = facts["proof"].pop("loads")
    loads = None if loads is None else tuple(loads)
    proof = Proof(**facts["proof"], unproven=unproven, loads=loads)
    kernel = Kernel(
        **facts["kernel"],
        objects=objects,
        packed=packed,
        proof=proof,
        target=task.target,
        ring_programs=ring_programs,
    )
    return Made(loops, kernel, library)

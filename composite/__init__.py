"""Author TensorFlow ops in Python; run them as one node each, fused where that is faster.

    from composite import Composite

    @Composite("FusedFullyConnected", inputs=[...], attrs=[...], derived_attrs=[...], outputs=[...])
    def fused_fully_connected(input_, filter_, bias, act):
        ...

Importing this package imports nothing else. TensorFlow comes with the first name that needs it,
after a check that it is the one that the package was built for; MLIR with the first decorated op;
TVM with the first kernel that has to be compiled. `load(folder, tensorflow=False)` needs none.
Where the environment has COMPOSITE_REGIONS=1, the runtime is loaded as soon as anybody has imported
TensorFlow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from composite.binding import tensorflow_version
from composite.jit import process_regions

if TYPE_CHECKING:
    from composite import hybrid as hybrid
    from composite import quant as quant
    from composite import tf_op as tf_op
    from composite.acceleration.accelerate import accelerate as accelerate
    from composite.acceleration.bisecting import bisect as bisect
    from composite.acceleration.comparing import Accelerated as Accelerated
    from composite.acceleration.later import Accelerating as Accelerating
    from composite.acceleration.replaying import ReplayReport as ReplayReport
    from composite.acceleration.replaying import replay as replay
    from composite.aot.building import build as build
    from composite.aot.opening import load as load
    from composite.checking import CheckError as CheckError
    from composite.checking import Report as Report
    from composite.checking import check as check
    from composite.choices import options as options
    from composite.counters import stats as stats
    from composite.decorator import Composite as Composite
    from composite.diverging.search import DivergeReport as DivergeReport
    from composite.diverging.search import diverge as diverge
    from composite.editing.match import Match as Match
    from composite.editing.models import Edited as Edited
    from composite.editing.models import replace as replace
    from composite.editing.report import ReplacementReport as ReplacementReport
    from composite.explanation import Explanation as Explanation
    from composite.explanation import explain as explain
    from composite.jit.worker import wait as wait
    from composite.kernels.chosen import use_tuned as use_tuned
    from composite.kernels.launches import Launch as Launch
    from composite.kernels.shipping import CacheReport as CacheReport
    from composite.kernels.shipping import export_cache as export_cache
    from composite.kernels.shipping import import_cache as import_cache
    from composite.linting import LintReport as LintReport
    from composite.linting import lint as lint
    from composite.ops.op import CompositeOp as CompositeOp
    from composite.profiling.counting import Profile as Profile
    from composite.profiling.counting import profile as profile
    from composite.progress.event import ProgressEvent as ProgressEvent
    from composite.recognition.recognizing import recognize as recognize
    from composite.recognition.report import RecognitionReport as RecognitionReport
    from composite.saving.graph_protos import to_portable as to_portable
    from composite.saving.model_loading import load_model as load_model
    from composite.saving.onnx_functions import to_onnx as to_onnx
    from composite.saving.saving import save as save
    from composite.saving.tflite_custom import tflite_delegate as tflite_delegate
    from composite.saving.tflite_custom import to_tflite as to_tflite
    from composite.tuning.tune import Tuned as Tuned
    from composite.tuning.tune import tune as tune

# No module may have the name of a public function: the import system would bind the module over it.
_HOMES = {
    "Accelerated": "composite.acceleration.comparing",
    "Accelerating": "composite.acceleration.later",
    "CacheReport": "composite.kernels.shipping",
    "CheckError": "composite.checking",
    "Composite": "composite.decorator",
    "CompositeOp": "composite.ops.op",
    "DivergeReport": "composite.diverging.search",
    "Edited": "composite.editing.models",
    "Explanation": "composite.explanation",
    "Launch": "composite.kernels.launches",
    "LintReport": "composite.linting",
    "Match": "composite.editing.match",
    "Profile": "composite.profiling.counting",
    "ProgressEvent": "composite.progress.event",
    "RecognitionReport": "composite.recognition.report",
    "ReplacementReport": "composite.editing.report",
    "ReplayReport": "composite.acceleration.replaying",
    "Report": "composite.checking",
    "Tuned": "composite.tuning.tune",
    "accelerate": "composite.acceleration.accelerate",
    "bisect": "composite.acceleration.bisecting",
    "build": "composite.aot.building",
    "check": "composite.checking",
    "diverge": "composite.diverging.search",
    "explain": "composite.explanation",
    "export_cache": "composite.kernels.shipping",
    "import_cache": "composite.kernels.shipping",
    "lint": "composite.linting",
    "load": "composite.aot.opening",
    "load_model": "composite.saving.model_loading",
    "options": "composite.choices",
    "profile": "composite.profiling.counting",
    "recognize": "composite.recognition.recognizing",
    "replace": "composite.editing.models",
    "replay": "composite.acceleration.replaying",
    "save": "composite.saving.saving",
    "stats": "composite.counters",
    "tflite_delegate": "composite.saving.tflite_custom",
    "to_onnx": "composite.saving.onnx_functions",
    "to_portable": "composite.saving.graph_protos",
    "to_tflite": "composite.saving.tflite_custom",
    "tune": "composite.tuning.tune",
    "use_tuned": "composite.kernels.chosen",
    "wait": "composite.jit.worker",
}
_MODULES = ("hybrid", "quant", "tf_op")

__all__ = [
    "Accelerated",
    "Accelerating",
    "CacheReport",
    "CheckError",
    "Composite",
    "CompositeOp",
    "DivergeReport",
    "Edited",
    "Explanation",
    "Launch",
    "LintReport",
    "Match",
    "Profile",
    "ProgressEvent",
    "RecognitionReport",
    "ReplacementReport",
    "ReplayReport",
    "Report",
    "Tuned",
    "accelerate",
    "bisect",
    "build",
    "check",
    "diverge",
    "explain",
    "export_cache",
    "import_cache",
    "lint",
    "load",
    "load_model",
    "options",
    "profile",
    "recognize",
    "replace",
    "replay",
    "save",
    "stats",
    "tflite_delegate",
    "to_onnx",
    "to_portable",
    "to_tflite",
    "tune",
    "use_tuned",
    "wait",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = f"composite.{name}" if name in _MODULES else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'composite' has no attribute {name!r}")
    if name != "load":  # which may do without
        tensorflow_version.check()
    if name in _MODULES:  # which the import binds here
        return import_module(home)
    value = getattr(import_module(home), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


process_regions.arrange()

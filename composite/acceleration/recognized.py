"""Functions in which ops are recognized, for `composite.accelerate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.acceleration.tracing import spec
from composite.editing.models import Edited
from composite.ops.compiled_call import do_not_convert
from composite.ops.op import CompositeOp
from composite.recognition.recognizing import recognize
from composite.recognition.report import RecognitionReport


class Recognizing:
    """A function that is called with ops in the places of what computes the same.

    What is known of the arguments decides which graph it has, so each trace has ops recognized in
    a graph of its own, once for the same shapes and dtypes.
    """

    def __init__(self, function: Callable[..., Any], ops: Sequence[CompositeOp] | None) -> None:
        """Looks for `ops`, as `composite.recognize` does."""
        self._function = function
        self._ops = ops
        self._edited: dict[str, Edited[RecognitionReport]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with these ops. Inside of a tf.function, which traces it."""
        return self._edited_for(args, kwargs)(*args, **kwargs)

    def report(self, *args: Any, **kwargs: Any) -> RecognitionReport:
        """What was recognized for such arguments."""
        return self._edited_for(args, kwargs).report

    def _edited_for(self, args: Any, kwargs: Any) -> Edited[RecognitionReport]:
        args, kwargs = tf.nest.map_structure(spec, (args, kwargs))
        key = repr((args, kwargs))
        if key not in self._edited:
            with tf.init_scope():
                concrete = tf.function(self._function).get_concrete_function(*args, **kwargs)
                self._edited[key] = recognize(concrete, self._ops)
        return self._edited[key]


do_not_convert(Recognizing)  # AutoGraph takes seconds for the code that recognizes

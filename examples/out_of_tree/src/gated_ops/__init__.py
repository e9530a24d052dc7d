"""Gated activations, each one node in a graph.

The wheel carries the built library: whoever installs it has no compiler, and needs none.
"""

from gated_ops.library.gated import gated_tanh

__all__ = ["gated_tanh"]

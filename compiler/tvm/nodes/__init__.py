"""TensorFlow's nodes and constants, as reading and lowering see them."""

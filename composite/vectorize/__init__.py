"""tf.vectorized_map over composite ops."""

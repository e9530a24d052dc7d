"""What a composite takes: operations and bytes, for users and for TensorFlow's profiler."""

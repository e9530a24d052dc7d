"""Times kernels against what TensorFlow would run instead, and decides where each one runs."""

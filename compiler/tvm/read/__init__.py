"""From a TensorFlow function to the lowered function, op by op."""

"""The lowered function: tensors, views, loops, and the sizes of their dimensions."""

"""`composite.diverge`: the first line of a body whose value differs between two ways to run it."""

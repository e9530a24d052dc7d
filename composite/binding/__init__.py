"""The binding of the runtime, and the records that cross it."""

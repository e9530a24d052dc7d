"""Writing TIR: blocks of statements, and reads and writes of elements in them."""

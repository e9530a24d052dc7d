"""Statements and expressions of TVM's TIR, as kernels are made of them."""

"""Lowerings of TF ops to :mod:`..ir`, a file for each family; :mod:`..table` lists them."""

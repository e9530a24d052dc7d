"""Lowering of TF ops to :mod:`..graph`, one file a family; :mod:`..table` lists them."""

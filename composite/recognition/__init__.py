"""`composite.recognize`: ops found in graphs that were written without them.

An op's expansion, and each part of a graph that it may be, are read into forms (algebra.py), in
which most spellings of an expression are one. Where the two are equal, and so are the values that
they compute, the op takes the part's place, as composite/editing does it.

The parts are cuts (cuts.py) of a graph (view.py), bounded by what is in the op's body
(vocabulary.py), and with what all of its expansions have (anchors.py). search.py tries the op's
inputs and attributes on one of each structure; finding.py does all of a scope; recognizing.py
knows models.
"""

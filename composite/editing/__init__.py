"""`composite.replace`: parts of graphs found, and replaced by other functions.

A graph and each function of its library is a scope (scope.py). What is looked for is a Match
(match.py); a pattern is a small graph of its own (pattern.py), found by matcher.py. What stands in
its place is traced for each place (replacement.py) and put there (splicing.py). editing.py does
it to a whole GraphDef; loaded_function.py and models.py know functions, Keras models and folders.
"""

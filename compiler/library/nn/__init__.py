"""What a network is made of: tf.nn, and the norms and clipping of tf and tf.linalg.

Not for: which names there are (compiler.library).
"""

"""The command line: the package's functions for people and scripts, one module a command.

Importing it imports neither TensorFlow nor a compiler; a command does, when it runs.
"""

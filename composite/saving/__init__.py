"""Models with composite ops as artifacts: what is saved, and where it runs."""

"""What makes, checks, measures and keeps a kernel, whether just in time or ahead of time."""

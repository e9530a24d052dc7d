"""The op object, and how a call of it becomes a node or an eager op."""

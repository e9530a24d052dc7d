"""From the lowered function to stages, each computed in one set of loops."""

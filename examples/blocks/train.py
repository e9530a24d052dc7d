"""Trains the transformer over composites and over their Python functions, from the same start.

python -m examples.blocks.train [--steps N]
"""

from __future__ import annotations

import click
import numpy as np

from examples.blocks.model import Transformer, accuracy, composites, plain, train


@click.command()
@click.option("--steps", default=200, show_default=True)
def main(steps: int) -> None:
    """Print the losses of both, and how often the first is right."""
    model = Transformer(composites)
    losses = train(model, steps)
    others = train(Transformer(plain), steps)
    for i in range(0, steps, max(1, steps // 10)):
        print(f"step {i:4}: loss {losses[i]:.6f}, without composites {others[i]:.6f}")
    print(f"the losses differ by at most {np.abs(np.subtract(losses, others)).max():.1e}")
    print(f"accuracy {accuracy(model):.4f} on new sequences")


if __name__ == "__main__":
    main()

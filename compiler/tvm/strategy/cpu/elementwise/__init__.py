"""Element-wise work: stages of it alone, and what follows the sums of a product."""

"""Matrix products on a CPU, with the element-wise work behind them."""

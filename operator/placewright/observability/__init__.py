"""What an operator says of itself while it runs: metrics, logs, traces, and that its event loop hangs."""

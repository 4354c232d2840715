"""The benchmarks' measuring parts: each runs in an environment of its own, from the checkout's root, by `python -m`."""

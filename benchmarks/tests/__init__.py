"""Tests of the benchmarks and the demo, which `make test-all` runs."""

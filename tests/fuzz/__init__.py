"""A suite that keeps looking for faults: `make fuzz`."""

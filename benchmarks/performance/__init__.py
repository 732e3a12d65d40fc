"""What fits cost, beside the machine and beside other libraries."""

"""Helpers of every layer: checks of arguments, files, the compiler, the machine, progress, HTML."""

"""Errors, ids, the clock and text: standard library, no I/O."""

"""Events to a screen or a stream: one renderer, one file; each takes events only."""

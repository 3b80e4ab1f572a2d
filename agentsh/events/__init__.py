"""The closed vocabulary of facts, the signals, and the codec between facts and records."""

"""The imperative shell around the context: journal, bus, turn, tool runner, session."""

"""agentsh: the terminal coding-agent shell that never forgets."""

__version__ = "0.1.0"

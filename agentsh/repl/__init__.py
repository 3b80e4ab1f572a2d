"""The keyboard: prompt-toolkit to session."""

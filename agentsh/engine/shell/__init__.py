"""Judges shell lines: what they say (syntax), what commands do (known, argv, git), and whether it is harmless."""

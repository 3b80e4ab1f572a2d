"""Slash commands: one command, one file."""

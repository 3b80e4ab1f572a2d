"""Protocols beside the values they exchange."""

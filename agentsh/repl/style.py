"""How the prompt looks: its classes, in the colours of a palette or in the terminal's own."""

from prompt_toolkit.styles import Style

from agentsh.base.palette import Palette

_CLASSES = {
    "mark": ("cyan", "bold"),
    "ask": ("yellow", "bold"),
    "name": ("", "bold"),
    "dim": ("brightblack", ""),
    "add": ("green", ""),
    "del": ("red", ""),
    "notice": ("", ""),
    "alarm": ("red", "bold"),
    "queued": ("brightblack", ""),
    "bottom-toolbar": ("", "noreverse"),
    "bottom-toolbar.text": ("brightblack", "noreverse"),
}
_NUMBERS = {"red": 1, "green": 2, "yellow": 3, "cyan": 6, "brightblack": 8}


def style_of(palette: Palette | None) -> Style:
    """Return the style; None for the colours of the terminal."""
    return Style.from_dict({name: f"{more} {_colour(colour, palette)}" for name, (colour, more) in _CLASSES.items()})


def _colour(name: str, palette: Palette | None) -> str:
    if not name:
        return ""
    return f"ansi{name}" if palette is None else palette.hex(_NUMBERS[name])

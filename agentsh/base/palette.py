"""Palettes: which colours stand for the names of styles, on a light or on a dark background.

Where the background is not known the terminal's own sixteen colours are used, which whoever chose it can read. A
palette takes its colours from the fixed part of the 256 (16 to 255), which themes of terminals leave alone.
"""

from collections.abc import Mapping
from typing import NamedTuple

RGB = tuple[int, int, int]
BASE = 16
"""Of the 256, the first sixteen are the terminal's own."""


class Palette(NamedTuple):
    """Colours by the number of the name that they stand for: 0 black to 7 white; 8 to 15 are the same, brighter.

    dim: what stands back, a grey, since how faint SGR 2 is differs from terminal to terminal. backgrounds: usual ones
    that text has to be read on, each with at least `READABLE` (a test holds it).
    """

    name: str
    colours: Mapping[int, int]
    dim: int
    backgrounds: tuple[RGB, ...]

    def number(self, colour: int) -> int:
        """Return the one of the 256 that stands for one of the sixteen."""
        return self.dim if colour == 8 else self.colours[colour % 8]

    def hex(self, colour: int) -> str:
        """Return it as `#rrggbb`."""
        return "#{:02x}{:02x}{:02x}".format(*rgb(self.number(colour)))


READABLE = 4.5
"""The least contrast of text with what it stands on. Source: WCAG 2.2, success criterion 1.4.3 (level AA)."""

DARK = Palette(
    "dark",
    {0: 250, 1: 210, 2: 78, 3: 179, 4: 75, 5: 213, 6: 81, 7: 253},
    248,
    # black; Visual Studio Code; One Dark; Solarized dark; Nord; Dracula
    ((0, 0, 0), (30, 30, 30), (40, 44, 52), (0, 43, 54), (46, 52, 64), (40, 42, 54)),
)
LIGHT = Palette(
    "light",
    {0: 16, 1: 124, 2: 22, 3: 94, 4: 25, 5: 90, 6: 24, 7: 238},
    240,
    # white; One Light; Solarized light; Catppuccin Latte
    ((255, 255, 255), (250, 250, 250), (253, 246, 227), (239, 241, 245)),
)


def rgb(number: int) -> RGB:
    """Return what xterm paints for a number from 16 on: a cube of six steps, then greys. Source: xterm, 256colres."""
    if number >= 232:
        grey = 8 + (number - 232) * 10
        return grey, grey, grey
    steps = (0, 95, 135, 175, 215, 255)
    n = number - BASE
    return steps[n // 36], steps[n // 6 % 6], steps[n % 6]


def luminance(colour: RGB) -> float:
    """Return the relative luminance of an sRGB colour, 0 to 1. Source: WCAG 2.2, "relative luminance"."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (n / 255 for n in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: RGB, other: RGB) -> float:
    """Return the contrast of two colours, 1 to 21. Source: WCAG 2.2, "contrast ratio"."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def for_background(colour: RGB) -> Palette:
    """Return the palette whose text is read better on a background."""
    return LIGHT if contrast(colour, (0, 0, 0)) > contrast(colour, (255, 255, 255)) else DARK

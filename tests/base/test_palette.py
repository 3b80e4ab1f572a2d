"""The palettes: text can be read on every background that they are for."""

import pytest
from rich._palettes import EIGHT_BIT_PALETTE

from agentsh.base.palette import BASE, DARK, LIGHT, READABLE, Palette, contrast, for_background, rgb


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda p: p.name)
def test_all_text_has_the_contrast_that_wcag_asks_for(palette: Palette) -> None:
    for colour in range(16):
        for ground in palette.backgrounds:
            assert contrast(rgb(palette.number(colour)), ground) >= READABLE, (colour, palette.hex(colour), ground)
    assert palette.number(8) == palette.dim


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda p: p.name)
def test_what_means_something_else_has_another_colour(palette: Palette) -> None:
    assert len({palette.number(n) for n in (1, 2, 3, 4, 5, 6, 8)}) == 7


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=lambda p: p.name)
def test_each_background_is_given_its_palette(palette: Palette) -> None:
    assert [for_background(ground) for ground in palette.backgrounds] == [palette] * len(palette.backgrounds)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((255, 255, 255), (119, 119, 119)) == pytest.approx(4.478, abs=0.001)  # the well-known #777


def test_the_256_are_those_of_xterm() -> None:
    assert [rgb(n) for n in range(BASE, 256)] == [tuple(EIGHT_BIT_PALETTE[n]) for n in range(BASE, 256)]

"""The pictures of the documentation are there, are linked, hold no controls and ask nobody for anything."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs").rglob("*.svg"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#:]+\.svg)\)")


def linked() -> set[Path]:
    return {(page.parent / link).resolve() for page in PAGES for link in LINK.findall(page.read_text("utf-8"))}


def test_every_picture_is_linked_and_every_link_is_a_picture() -> None:
    assert linked() == {picture.resolve() for picture in PICTURES}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.name)
def test_a_picture_is_whole_and_asks_nobody(picture: Path) -> None:
    text = picture.read_text("utf-8")
    ElementTree.fromstring(text)
    assert not re.search(r"https?://(?!www\.w3\.org|www\.textualize\.io)|<script|<image|\x1b", text)
    assert not re.search(r"/tmp/|/root/|/home/(?!ana)", text)

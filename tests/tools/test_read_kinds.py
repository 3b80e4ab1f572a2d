"""read shows what is no plain text as what it is: images, notebooks as cells, PDFs as text; not by the name alone."""

import asyncio
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agentsh.base.errors import ToolFailed
from agentsh.tools import pdf
from agentsh.tools.notebook import notebook
from agentsh.tools.textfile import MAX_SHOWN_BYTES
from tests.tools.conftest import Call


def pdf_of(*pages: str) -> bytes:
    """A PDF with a line of text for each line of each page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        shown = "".join(f"({line}) Tj T* " for line in text.split("\n")) if text else ""
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown}ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), b" ".join(kids))
    out, places = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, os.SEEK_END)
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()


class TestPdf:
    async def test_its_text_page_by_page(self, root: Path, call: Call) -> None:
        (root / "a.pdf").write_bytes(pdf_of("one\ntwo", "", "three"))
        outcome = await call("read", path="a.pdf")
        assert outcome.for_model == (
            "[a.pdf: PDF, pages 1-3 of 3]\n--- page 1 ---\none\ntwo\n--- page 2 ---\n[no text: it may be a picture]\n"
            "--- page 3 ---\nthree\n"
        )
        assert outcome.for_user == "read a.pdf · PDF, pages 1-3 of 3"
        part = await call("read", path="a.pdf", offset=2, limit=1)
        assert part.for_model.startswith("[a.pdf: PDF, page 2 of 3]\n--- page 2 ---\n")
        assert part.for_model.endswith("[1 more page: read on with offset=3]")
        past = await call("read", path="a.pdf", offset=4)
        assert (past.status, past.for_model) == ("error", "a.pdf has only 3 pages: offset 4 is past its end.")

    async def test_by_its_bytes_whatever_its_name(self, root: Path, call: Call) -> None:
        (root / "a.txt").write_bytes(pdf_of("one"))
        (root / "b.pdf").write_text("two\n")
        assert "PDF, page 1 of 1" in (await call("read", path="a.txt")).for_model
        assert (await call("read", path="b.pdf")).for_model == "two\n"

    async def test_limits(self, root: Path, call: Call) -> None:
        page = "\n".join("x" * 60 for _ in range(150))
        (root / "a.pdf").write_bytes(pdf_of(*[page] * 8))
        text, seen, offset = "", [], 1
        while offset:
            text = (await call("read", path="a.pdf", offset=offset)).for_model
            assert len(text.encode()) < MAX_SHOWN_BYTES + 200
            seen += [line for line in text.split("\n") if line.startswith("--- page ")]
            offset = int(text.rpartition("offset=")[2][:-1]) if "read on with" in text else 0
        assert seen == [f"--- page {n} ---" for n in range(1, 9)]
        (root / "b.pdf").write_bytes(pdf_of("\n".join("y" * 60 for _ in range(700)), "z"))
        text = (await call("read", path="b.pdf")).for_model
        assert "[page 1 is cut]" in text
        assert text.endswith("[1 more page: read on with offset=2]")

    @pytest.mark.parametrize("data", [b"%PDF-1.4\n", b"%PDF-1.4\n" + b"\xff" * 5_000, pdf_of("one")[:200]])
    async def test_a_broken_one_is_told_in_one_line(self, root: Path, call: Call, data: bytes) -> None:
        (root / "a.pdf").write_bytes(data)
        with pytest.raises(ToolFailed) as caught:
            await call("read", path="a.pdf")
        assert caught.value.message.startswith("a.pdf is a PDF, but it cannot be read: ")
        assert len(caught.value.message) < 500
        assert "\n" not in caught.value.message

    async def test_without_the_library_it_says_what_to_install(
        self, root: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        child = tmp_path / "child.py"
        source = Path(pdf.__file__).with_name("pdf_child.py").read_text()
        child.write_text(source.replace("import json", "import json\nimport sys as _\n_.modules['pypdf'] = None"))
        monkeypatch.setattr(pdf, "_CHILD", child)
        (root / "a.pdf").write_bytes(pdf_of("one"))
        with pytest.raises(ToolFailed, match=r"pypdf is not installed.*pip install 'agentsh\[pdf\]'"):
            await call("read", path="a.pdf")

    async def test_what_takes_too_long_is_ended(
        self, root: Path, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        child = tmp_path / "child.py"
        pid = tmp_path / "pid"
        child.write_text(f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(99)")
        monkeypatch.setattr(pdf, "_CHILD", child)
        monkeypatch.setattr(pdf, "LIMIT_S", 1.0)
        (root / "a.pdf").write_bytes(pdf_of("one"))
        with pytest.raises(ToolFailed, match="more than 1 s"):
            await call("read", path="a.pdf")
        pid.unlink(missing_ok=True)
        monkeypatch.setattr(pdf, "LIMIT_S", 60.0)
        task = asyncio.ensure_future(call("read", path="a.pdf"))
        async with asyncio.timeout(30):
            while not (pid.exists() and pid.read_text()):  # noqa: ASYNC110 - of the second child, which has no event
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert pid.read_text() not in os.listdir("/proc")

    async def test_memory_is_bounded(self, root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pdf, "MEMORY_BYTES", 30 << 20)
        (root / "a.pdf").write_bytes(pdf_of("one"))
        with pytest.raises(ToolFailed, match=r"a\.pdf"):
            await call("read", path="a.pdf")


class TestImage:
    async def test_it_comes_with_the_result(self, root: Path, call: Call) -> None:
        picture = io.BytesIO()
        Image.new("RGB", (32, 8), "red").save(picture, "PNG")
        (root / "a.txt").write_bytes(picture.getvalue())
        outcome = await call("read", path="a.txt")
        assert outcome.for_model == "[a.txt: image/png, 32 × 8 pixels]"
        assert outcome.for_user == "read a.txt · PNG image, 32 × 8"
        (image,) = outcome.images
        assert (image.name, image.media_type, image.width, image.height) == ("a.txt", "image/png", 32, 8)

    async def test_i148_a_page_named_png_is_text(self, root: Path, call: Call) -> None:
        (root / "a.png").write_text("<html>\n")
        outcome = await call("read", path="a.png")
        assert (outcome.for_model, outcome.images) == ("<html>\n", ())

    async def test_i149_a_damaged_one_never_becomes_an_image(self, root: Path, call: Call) -> None:
        (root / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
        with pytest.raises(ToolFailed, match=r"a\.png is damaged"):
            await call("read", path="a.png")


def cells(*cells: dict[str, Any], **more: Any) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)} | more)


def code(source: Any, *outputs: dict[str, Any], count: int | None = None) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "execution_count": count}


class TestNotebook:
    async def test_its_cells(self, root: Path, call: Call) -> None:
        (root / "a.ipynb").write_text(
            cells(
                {"cell_type": "markdown", "source": ["# Title\n", "text"]},
                code("x = 1\nx", {"output_type": "execute_result", "data": {"text/plain": ["1"]}}, count=3),
                code(
                    ["plot()\n"],
                    {"output_type": "stream", "name": "stdout", "text": ["drawn\n"]},
                    {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                    {"output_type": "error", "ename": "E", "evalue": "no", "traceback": ["\x1b[31mline\x1b[0m"]},
                ),
                metadata={"language_info": {"name": "python"}},
            )
        )
        outcome = await call("read", path="a.ipynb")
        assert outcome.for_model == (
            "[a.ipynb: python notebook, 3 cells, not its JSON]\n"
            "--- cell 1: markdown ---\n# Title\ntext\n"
            "--- cell 2: code [3] ---\nx = 1\nx\n--- output of cell 2 ---\n1\n"
            "--- cell 3: code ---\nplot()\n--- output of cell 3 ---\ndrawn\n"
            "--- output of cell 3 ---\n<Figure>\n[image/png]\n--- output of cell 3 ---\nE: no\nline\n"
        )
        part = (await call("read", path="a.ipynb", offset=2, limit=2)).for_model
        assert part.startswith(
            "[a.ipynb: lines 2-3 of 18, python notebook, 3 cells, not its JSON]\n# Title\ntext\n[15 "
        )

    async def test_outputs_are_short(self, root: Path, call: Call) -> None:
        output = {"output_type": "stream", "text": "x" * 100_000}
        (root / "a.ipynb").write_text(cells(*[code("x", output)] * 5))
        assert len((await call("read", path="a.ipynb")).for_model) < 15_000

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            "{}",
            json.dumps({"nbformat": 3, "worksheets": []}),
            cells(cells=5),
            cells(cells=[1]),
            "[" * 50_000,
        ],
    )
    async def test_what_is_none_is_shown_as_it_is(self, root: Path, call: Call, text: str) -> None:
        assert notebook(text) is None
        (root / "a.ipynb").write_text(text)
        assert text[:100] in (await call("read", path="a.ipynb")).for_model

    @pytest.mark.parametrize(
        "cell",
        [
            {},
            {"cell_type": None, "source": None},
            {"cell_type": 5, "source": [5], "outputs": 5},
            code("x", {}),
            code("x", {"output_type": "display_data", "data": 5}),
            {"cell_type": "code", "outputs": [None, 5, {"output_type": "stream", "text": {}}]},
        ],
    )
    def test_odd_cells_are_no_crash(self, cell: dict[str, Any]) -> None:
        found = notebook(cells(cell))
        assert found is not None
        assert found.text.startswith("--- cell 1: ")

"""Writes the table of attempts into docs/sandbox.md: `python -m tests.workspace.escape.page`."""

from tests.workspace.escape.test_escapes import PAGE, table


def main() -> None:
    """Replace what stands between the heading of the table and the next heading."""
    text = PAGE.read_text(encoding="utf-8")
    head, found, rest = text.partition("| attempt |")
    assert found, "the page has no table"
    tail = rest[rest.index("\n\n") :]
    PAGE.write_text(head + table() + tail, encoding="utf-8")


if __name__ == "__main__":
    main()

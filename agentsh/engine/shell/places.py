"""Finds the `cd` of a shell line that surely happen before what comes later in it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Node


def entering(root: "Node") -> dict[int, Literal["", "runs", "guards"]]:
    """Return the plain `cd DIR` of a line, by where it starts, after which all comes that is written later."""
    found: dict[int, Literal["", "runs", "guards"]] = {}
    if any(node.type == "function_definition" for node in all_nodes(root)):  # it might be called cd
        return found
    statements = [node for node in root.children if node.type != "comment"]
    alone = len([node for node in statements if node.is_named]) == 1
    for at, node in enumerate(statements):
        after = statements[at + 1] if at + 1 < len(statements) else None
        if after is not None and after.type == "&":
            continue
        chain: list[Node] = []
        operators: set[str] = set()
        while node.type == "list" and node.child_count == 3:
            chain.append(node.children[2])
            operators.add(node.children[1].type)
            node = node.children[0]
        if _plain_cd(node):
            found[node.start_byte] = "runs"
        if alone and operators == {"&&"}:
            found |= {each.start_byte: "guards" for each in (node, *chain) if _plain_cd(each)}
    return found


def _plain_cd(node: "Node") -> bool:
    text = node.children[0].text if node.type == "command" and node.child_count == 2 else None
    return text == b"cd"


def all_nodes(node: "Node") -> Iterator["Node"]:
    """Yield a node and all below it."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children

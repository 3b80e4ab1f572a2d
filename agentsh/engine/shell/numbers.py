"""Finds the variables of a shell line that hold a whole number wherever they are used.

Only of these arithmetic may make use: bash evaluates what a variable holds, and an index in that may run a command.
"""

import re
from collections import Counter
from typing import TYPE_CHECKING

from agentsh.engine.shell.places import all_nodes
from agentsh.engine.shell.words import ASSIGNABLE

if TYPE_CHECKING:
    from tree_sitter import Node

_NUMBER = re.compile(rb"\d{1,9}")
_WORD = re.compile(r"\w+")
_USES = frozenset({
    "simple_expansion", "expansion", "binary_expression", "unary_expression", "postfix_expression",
    "parenthesized_expression", "arithmetic_expansion",
})  # fmt: skip


def numeric(root: "Node", source: str) -> frozenset[str]:
    """Return the names. Each is set to a number before anything else is said of it, and never to anything else.

    Every place of the line in which the name stands is looked at, in quotes and comments too.
    """
    sets: dict[str, list[Node]] = {}
    known: Counter[str] = Counter()
    first = _first_statements(root)
    for node in all_nodes(root):
        parent = node.parent
        if node.type != "variable_name" or parent is None or node.text is None:
            continue
        name = node.text.decode()
        if parent.type in ("variable_assignment", "for_statement"):
            sets.setdefault(name, []).append(parent)
        elif parent.type not in _USES:
            continue
        known[name] += 1
    words = Counter(_WORD.findall(source))
    return frozenset(
        name
        for name, places in sets.items()
        if ASSIGNABLE.fullmatch(name)
        and words[name] == known[name]
        and all(map(_to_number, places))
        and _before_all(name, places, first, root)
    )


def _first_statements(root: "Node") -> set[int]:
    """Return where the statements begin that surely run, in this very shell."""
    found = set()
    children = [child for child in root.children if child.type != "comment"]
    for at, child in enumerate(children):
        if at + 1 == len(children) or children[at + 1].type != "&":
            found.add(child.start_byte)
    return found


def _to_number(place: "Node") -> bool:
    """Tell whether an assignment, or all values of a loop, are numbers."""
    if place.type == "variable_assignment":
        rest = place.children[1:]
        if [child.type for child in rest[:1]] != ["="] or len(rest) != 2:
            return False
        return rest[1].type == "arithmetic_expansion" or _NUMBER.fullmatch(rest[1].text or b"") is not None
    body = place.child_by_field_name("body")
    values = [child for child in place.children_by_field_name("value") if child != body]
    return bool(values) and all(_NUMBER.fullmatch(value.text or b"") for value in values)


def _before_all(name: str, places: "list[Node]", first: set[int], root: "Node") -> bool:
    """Tell whether one of the places comes before every use: else the environment may have set the variable."""
    uses = [node for node in all_nodes(root) if node.type == "variable_name" and (node.text or b"").decode() == name]
    begin = min(node.start_byte for node in uses)
    for place in places:
        loop = place.type == "for_statement"
        own = place.child_by_field_name("variable" if loop else "name")
        if own is None or own.start_byte != begin:
            continue
        plain = place.parent is not None and place.parent.type in ("program", "list")
        if plain and place.start_byte in first:
            return True
        if loop and all(place.start_byte <= node.start_byte < place.end_byte for node in uses):
            return True
    return False

"""What a model is told about the tools is a snapshot: a change shows in review, with its cost in bytes."""

import json
import os
from pathlib import Path

from agentsh.app.wiring import TOOLS, load

SNAPSHOT = Path(__file__).with_name("schemas.json")
MAX_BYTES = 6_500


def test_schemas_are_the_snapshot() -> None:
    tools = []
    for target in TOOLS.values():
        spec = load(target).spec
        tools.append({"name": spec.name, "description": spec.description, "parameters": spec.parameters})
    size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode())
    found = json.dumps({"compact_bytes": size, "tools": tools}, ensure_ascii=False, indent=1) + "\n"
    if os.environ.get("AGENTSH_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert found == SNAPSHOT.read_text(encoding="utf-8"), "run again with AGENTSH_UPDATE_SNAPSHOTS=1 and look at it"
    assert size < MAX_BYTES

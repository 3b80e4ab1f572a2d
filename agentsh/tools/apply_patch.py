"""The tool that changes files by a patch."""

from collections.abc import Mapping
from typing import Annotated, Any

from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool


def _paths(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    from agentsh.tools.patch_format import touched

    patch = arguments.get("patch")
    return touched(patch) if isinstance(patch, str) else ()


@tool("apply_patch", effects={"write"}, subject="patch", tryable=True, paths=_paths)
def apply_patch(
    ctx: ToolContext, patch: Annotated[str, Field(description="the patch, from Begin to End")]
) -> ToolOutcome:
    """Add, change, move, delete up to 100 files; stops at a section that does not fit.

    *** Begin Patch
    *** Update File: a.py
    *** Move to: b.py
    @@ class A
     context
    -old
    +new
    *** Add File: new.py
    +line
    *** Delete File: c.py
    *** End Patch

    Context: 3 lines around a change, exactly as in the file; @@ names the class or function where it is not unique.
    """
    from agentsh.tools.patch_files import apply  # with all that it needs: most sessions begin without a patch

    return apply(ctx.workspace, patch)


TOOL = apply_patch

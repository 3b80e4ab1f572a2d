"""What a call of a tool does, in parts that rules can be held against."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentsh.base.errors import PathRefused
from agentsh.base.text import one_line
from agentsh.ports.tool import Tool
from agentsh.ports.workspace import Workspace

if TYPE_CHECKING:
    from agentsh.engine.shell.judge import Judgement


def what_it_does(tool: Tool, arguments: Mapping[str, Any], workspace: Workspace, directory: str = ".") -> "Judgement":
    """Return the parts of a call: of a shell line each command, of any other tool the call itself.

    directory: where a command starts, relative to the root.
    """
    from agentsh.engine.shell.judge import Judgement, Part, judge  # for the first call, not for the start

    spec = tool.spec
    if "exec" in spec.effects and spec.subject is not None:
        line = arguments.get(spec.subject)
        if not isinstance(line, str):
            return Judgement((), "there is no command")
        return judge(line, workspace, directory)
    problem = None
    if "net" in spec.effects and spec.subject is not None:
        host = _host(str(arguments.get(spec.subject, "")))
        why = f"it reaches {host or 'the web'}"
        return Judgement((Part(spec.name, f"{spec.name} {host}".strip(), (), (host,) if host else (), why),))
    if spec.effects & {"exec", "net"}:
        problem = "it reaches out of the workspace"
    elif "write" in spec.effects:
        problem = "it changes files"
    named = paths_of(tool, arguments)
    paths = {path: None for given in named for path in _spellings(given, workspace)}
    about = one_line(", ".join(named) or str(arguments.get(spec.subject or "", "")), 200)
    return Judgement((Part(spec.name, f"{spec.name} {about}".strip(), (), tuple(paths), problem),))


def _host(url: str) -> str:
    """Return the host of a URL, for rules such as `web_fetch(*.python.org)`; empty where it has none."""
    try:
        return one_line(urlsplit(url.strip()).hostname or "", 200)
    except ValueError:
        return ""


def paths_of(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Return the paths that a call names, as it spells them."""
    if tool.spec.paths is not None:
        return list(tool.spec.paths(arguments))
    several = arguments.get("paths")
    found = [arguments.get("path"), *(several if isinstance(several, list | tuple) else ())]
    return [value for value in found if isinstance(value, str)]


def _spellings(path: str, workspace: Workspace) -> list[str]:
    """Return a path relative to the root: as spelled, and with links followed where it stays inside."""
    try:
        spelled = workspace.relative(path)
    except PathRefused:
        return [path]
    return [spelled, workspace.real(spelled) or spelled]

"""The tables from a name to what it means: to add a tool, a wire, a store or a renderer is one file and one line."""

from importlib import import_module
from typing import Any

TOOLS = {
    "read": "agentsh.tools.read:TOOL",
    "list": "agentsh.tools.list:TOOL",
    "glob": "agentsh.tools.glob:TOOL",
    "grep": "agentsh.tools.grep:TOOL",
    "write": "agentsh.tools.write:TOOL",
    "apply_patch": "agentsh.tools.apply_patch:TOOL",
    "edit": "agentsh.tools.edit:TOOL",
    "shell": "agentsh.tools.shell:TOOL",
    "job": "agentsh.tools.job:TOOL",
    "todo": "agentsh.tools.todo:TOOL",
    "ask_user": "agentsh.tools.ask_user:TOOL",
    "web_fetch": "agentsh.tools.web_fetch:TOOL",
}
"""What there is, in the order in which a model is told; app/toolset.py knows what it is offered."""

WIRES = {
    "chat": "agentsh.models.openai_chat:OpenAIChat",
    "demo": "agentsh.models.demo:DemoModel",
}
"""Ways to speak to a provider: classes made from an `Endpoint`."""

STORES = {
    "jsonl": "agentsh.stores.jsonl:JsonlStore",
}
"""Places that keep logs: classes made from a directory, the blobs beside it, and the members of `[log]`."""

BLOBS = {
    "files": "agentsh.stores.blobs:FileBlobs",
}
"""Places that keep blobs: classes made from a directory."""

BUCKETS = {
    "file": "agentsh.stores.bucket_files:FileBucket",
    "s3": "agentsh.stores.bucket_objects:ObjectBucket",
    "gs": "agentsh.stores.bucket_objects:ObjectBucket",
    "az": "agentsh.stores.bucket_objects:ObjectBucket",
}
"""Places that copies of sessions go to, by the scheme of their URL; app/uploading.py knows what each is made from."""

RENDERERS = {
    "screen": "agentsh.render.screen:ScreenRenderer",
    "json": "agentsh.render.jsonl:JsonRenderer",
    "final": "agentsh.render.final:FinalRenderer",
    "md": "agentsh.render.md:MarkdownRenderer",
    "html": "agentsh.render.html:HtmlRenderer",
}
"""What shows events; app/screens.py knows what each is made from."""


def load(target: str) -> Any:
    """Return what `module:name` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)

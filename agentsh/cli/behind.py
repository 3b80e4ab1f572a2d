"""What the first turn will need, loaded behind a prompt that takes keys already: Enter should not wait either."""

from threading import Thread


def load_behind(*, model: bool) -> Thread:
    """Begin to load it in a daemon thread; return that. model: whether one is spoken to through openai (0.2 s)."""
    thread = Thread(target=_load, args=(model,), name="load-behind", daemon=True)
    thread.start()
    return thread


def _load(model: bool) -> None:
    from agentsh.models.openai_loading import load_openai
    from agentsh.render import markdown

    if model:
        load_openai()
    import agentsh.tools.arguments  # noqa: F401 - for the first call of a tool

    markdown.preload()

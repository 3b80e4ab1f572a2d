"""Opens a session's log and folds it: what every command that writes to a session begins with."""

from agentsh.context.state_codec import reducer
from agentsh.engine.open import Refolded, refold
from agentsh.log.store import EventStore, Opened


async def open_folded(store: EventStore, session: str) -> tuple[Opened, Refolded]:
    """Open a log and fold it, from its newest checkpoint on where one is of use."""
    opened = await store.open(session, reducer=reducer())
    try:
        return opened, refold(opened)
    except ValueError:  # it names this reducer and is not its own
        await opened.log.close()
    except BaseException:
        await opened.log.close()
        raise
    opened = await store.open(session)
    try:
        return opened, refold(opened)
    except BaseException:
        await opened.log.close()
        raise

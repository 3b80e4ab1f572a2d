"""What the keys do. Editing itself is prompt-toolkit's: emacs or vi, as the user's settings say."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.filters import (
    Condition,
    Filter,
    emacs_insert_mode,
    has_focus,
    is_searching,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

    from agentsh.repl.actions import Actions
    from agentsh.repl.asked import Asked
    from agentsh.repl.images import Along, Images
    from agentsh.repl.notice import Notice
    from agentsh.repl.panel import Panel
    from agentsh.repl.pastes import Pastes
    from agentsh.repl.picker import Picker

HELP = (
    ("Enter", "send; while a turn runs: queue"),
    ("Ctrl-S", "steer: send into the running turn"),
    ("Up", "take the newest queued text back; history"),
    ("Esc", "interrupt; the queue comes back"),
    ("Alt-Enter, Ctrl-J", "new line"),
    ("Tab", "put in what is marked in the list; Up, Down choose"),
    ("@", "a file: it is sent along"),
    ("!cmd, !!cmd", "run it in the workspace; with !! the model is not told"),
    ("PgUp, PgDn", "the rest of what a command shows; Esc takes it away"),
    ("Ctrl-O", "all that the newest call printed; again, or Esc: away"),
    ("Ctrl-T", "what the model thought; again, or Esc: away"),
    ("Ctrl-R", "search the history"),
    ("Ctrl-X Ctrl-E", "write in your editor"),
    ("Ctrl-Z, Ctrl-_", "undo what was typed"),
    ("Ctrl-C", "interrupt; clear the line; twice: leave"),
    ("Ctrl-D", "leave"),
    ("y, s, p, n, e", "to an approval: yes, for the session, the project, no, why"),
)
"""As /help shows them."""
FOLDS = (("c-t", "/reasoning"), ("c-o", "/output"))
"""What shows whole what the scrollback has a part of."""


class Keyed(Protocol):
    """The prompt, as far as keys move it. hinting: it says that another Ctrl-C leaves."""

    actions: "Actions"
    hinting: bool
    asked: "Asked | None"
    picking: "Picker | None"
    notice: "Notice"
    panel: "Panel"
    pastes: "Pastes"
    images: "Images"

    @property
    def buffer(self) -> "Buffer":
        """The input line."""
        ...

    @property
    def ctrl_c_again(self) -> bool:
        """Whether the last Ctrl-C was so recent that another one leaves."""
        ...

    def after_ctrl_c(self) -> None:
        """Count a Ctrl-C."""
        ...

    def leave(self, *, by_ctrl_c: bool = False) -> None:
        """End it."""
        ...

    def hush(self) -> None:
        """Take away what is shown above the input."""
        ...

    def take(self) -> "tuple[str, Along]":
        """Return what is typed, and empty the line."""
        ...

    def write_elsewhere(self) -> None:
        """Open what is typed in the user's editor."""
        ...


def bindings(prompt: Keyed) -> KeyBindings:
    """Return the keys of a prompt: of its input, and of a question that is being asked."""
    keys = KeyBindings()
    asking = Condition(lambda: prompt.asked is not None)
    reasoning = Condition(lambda: prompt.asked is not None and prompt.asked.reasoning)
    picking = Condition(lambda: prompt.picking is not None) & ~asking
    plain = Condition(lambda: has_focus(prompt.buffer)()) & ~is_searching & ~asking & ~picking
    _sending(keys, prompt, plain)
    _undoing(keys, plain)
    _editing(keys, prompt, plain)
    _stopping(keys, prompt, plain, asking)
    _answering(keys, prompt, asking & ~reasoning, reasoning)
    _picking(keys, prompt, picking)
    _doing_nothing(keys, asking | picking)
    _paging(keys, prompt, plain)
    return keys


def _sending(keys: KeyBindings, prompt: Keyed, plain: Filter) -> None:
    empty = Condition(lambda: not prompt.buffer.text)
    working = Condition(prompt.actions.working)

    @keys.add("enter", filter=plain)
    def _send(event: KeyPressEvent) -> None:
        prompt.actions.enter(*(prompt.take() if prompt.buffer.text.strip() else ("", ())))

    @keys.add("c-s", filter=plain & working)
    def _steer(event: KeyPressEvent) -> None:
        if prompt.buffer.text.strip():
            prompt.actions.steer(*prompt.take())

    @keys.add("escape", "enter", filter=plain)
    @keys.add("c-j", filter=plain)
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("up", filter=plain & empty)
    def _recall(event: KeyPressEvent) -> None:
        if not prompt.actions.recall():
            event.current_buffer.auto_up()

    offered = plain & Condition(lambda: bool(prompt.panel.candidates))

    @keys.add("tab", filter=offered)
    def _take(event: KeyPressEvent) -> None:
        prompt.panel.take(event.current_buffer)

    @keys.add("tab", filter=plain & ~offered)
    def _indent(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("    ")

    @keys.add("down", filter=offered)
    def _next(event: KeyPressEvent) -> None:
        prompt.panel.move(1)

    @keys.add("up", filter=offered)
    def _previous(event: KeyPressEvent) -> None:
        prompt.panel.move(-1)

    @keys.add("escape", filter=offered)
    def _close(event: KeyPressEvent) -> None:
        prompt.panel.close(event.current_buffer)

    @keys.add("<bracketed-paste>", filter=plain)
    def _paste(event: KeyPressEvent) -> None:
        prompt.hinting = False
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(prompt.images.shown(text) or prompt.pastes.shown(text))

    @keys.add("<any>", filter=plain & (vi_insert_mode | emacs_insert_mode), save_before=_begins_a_word)
    def _type(event: KeyPressEvent) -> None:
        prompt.hinting = False
        event.current_buffer.insert_text(event.data * event.arg)


def _begins_a_word(event: KeyPressEvent) -> bool:
    """Whether what is typed next is undone by itself: a word goes at once."""
    return not event.is_repeat or event.data.isspace()


def _undoing(keys: KeyBindings, plain: Filter) -> None:
    @keys.add("c-z", filter=plain, save_before=lambda _: False)
    @keys.add("c-_", filter=plain, save_before=lambda _: False)
    def _undo(event: KeyPressEvent) -> None:
        event.current_buffer.undo()


def _editing(keys: KeyBindings, prompt: Keyed, plain: Filter) -> None:
    @keys.add("c-x", "c-e", filter=plain)
    @keys.add("v", filter=plain & vi_navigation_mode)
    def _edit(event: KeyPressEvent) -> None:
        prompt.write_elsewhere()


def _stopping(keys: KeyBindings, prompt: Keyed, plain: Filter, asking: Filter) -> None:
    working = Condition(prompt.actions.working)
    empty = Condition(lambda: not prompt.buffer.text)

    nothing_offered = Condition(lambda: not prompt.panel.candidates)

    @keys.add("escape", filter=((plain & nothing_offered & ~vi_insert_mode) | asking) & working)
    def _stop(event: KeyPressEvent) -> None:
        prompt.actions.interrupt()

    @keys.add("c-c", filter=asking)
    @keys.add("c-c", filter=plain & working & empty)
    def _stop_or_leave(event: KeyPressEvent) -> None:
        if prompt.ctrl_c_again:
            prompt.leave(by_ctrl_c=True)
        prompt.after_ctrl_c()
        prompt.actions.interrupt()

    @keys.add("c-c", filter=plain & ~(working & empty))
    def _clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.append_to_history()  # Up brings it back
            event.current_buffer.reset()
            prompt.panel.follow(event.current_buffer)
        elif prompt.ctrl_c_again:
            prompt.leave(by_ctrl_c=True)
        prompt.hinting = True
        prompt.after_ctrl_c()

    @keys.add("c-d", filter=plain & empty)
    def _leave(event: KeyPressEvent) -> None:
        prompt.leave()


def _answering(keys: KeyBindings, prompt: Keyed, choosing: Filter, reasoning: Filter) -> None:
    @keys.add("<any>", filter=choosing)
    @keys.add("<bracketed-paste>", filter=choosing)
    @keys.add("enter", filter=choosing)
    def _choose(event: KeyPressEvent) -> None:
        if prompt.asked is not None:
            prompt.asked.key(event.data)

    @keys.add("enter", filter=reasoning)
    def _reason(event: KeyPressEvent) -> None:
        if prompt.asked is not None:
            text = prompt.buffer.text
            prompt.buffer.reset()
            prompt.asked.reason(text)


def _picking(keys: KeyBindings, prompt: Keyed, picking: Filter) -> None:
    def act(what: Callable[["Picker"], None]) -> Callable[[KeyPressEvent], None]:
        def handler(event: KeyPressEvent) -> None:
            if prompt.picking is not None:
                what(prompt.picking)

        return handler

    table: tuple[tuple[tuple[str, ...], Callable[[Picker], None]], ...] = (
        (("up", "c-p", "s-tab"), lambda picker: picker.move(-1)),
        (("down", "c-n", "tab"), lambda picker: picker.move(1)),
        (("pageup",), lambda picker: picker.page(-1)),
        (("pagedown",), lambda picker: picker.page(1)),
        (("enter",), lambda picker: picker.choose()),
        (("escape", "c-c", "c-g", "c-d"), lambda picker: picker.cancel()),
    )
    for names, what in table:
        for name in names:
            keys.add(name, filter=picking)(act(what))

    @keys.add("c-j", filter=picking)
    def _nothing(event: KeyPressEvent) -> None:
        """What is looked for has one line."""


def _doing_nothing(keys: KeyBindings, held: Filter) -> None:
    """Keys that would look in the history, while something else has the input: an answer would go there instead."""
    for key in ("c-r", "c-s"):
        keys.add(key, filter=held)(lambda event: None)
    keys.add("c-z", filter=is_searching)(lambda event: None)


def _unfolding(prompt: Keyed, command: str) -> Callable[[KeyPressEvent], None]:
    def handler(event: KeyPressEvent) -> None:
        if prompt.notice:
            prompt.hush()
        else:
            prompt.actions.enter(command, ())

    return handler


def _paging(keys: KeyBindings, prompt: Keyed, plain: Filter) -> None:
    long = plain & Condition(lambda: prompt.notice.long)
    shown = plain & Condition(lambda: bool(prompt.notice) and not prompt.panel.candidates)

    @keys.add("pagedown", filter=long)
    def _down(event: KeyPressEvent) -> None:
        prompt.notice.turn(1)

    @keys.add("pageup", filter=long)
    def _up(event: KeyPressEvent) -> None:
        prompt.notice.turn(-1)

    for key, command in FOLDS:
        keys.add(key, filter=plain)(_unfolding(prompt, command))

    keys.add("c-o", filter=~plain)(lambda event: None)  # readline's key would send, and end the prompt

    @keys.add("escape", filter=shown & ~vi_insert_mode & ~Condition(prompt.actions.working))
    def _away(event: KeyPressEvent) -> None:
        prompt.hush()

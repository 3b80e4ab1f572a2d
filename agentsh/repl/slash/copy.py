"""/copy: the last answer, or a block of code in it, to the clipboard of the terminal, through OSC 52.

The terminal may be on another machine: the text goes through it. Whether it took it is not told by any terminal.
Source: xterm's control sequences, "Manipulate Selection Data". tmux passes it on inside its own sequence only.
"""

import base64
import os

from agentsh.base.errors import UsageProblem
from agentsh.base.text import clean, one_line, plural
from agentsh.context.state import AgentItem
from agentsh.repl.commands import SlashContext, SlashOutcome

MAX_BYTES = 74_994
"""Of text: xterm takes sequences of 100,000 bytes, base64 makes four of three, and there is a frame around it."""


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Copy it. argument: empty, `code` for the last block of code, `code N` for the N-th."""
    if context.io.plain is not None:
        raise UsageProblem("the line mode writes no control sequences", hint="/export writes a file")
    answer = _last_answer(context)
    if answer is None:
        return SlashOutcome(["  there is no answer yet"])
    word, _, number = argument.partition(" ")
    if word == "code":
        answer = _block(blocks(answer), number.strip())
    elif argument:
        raise UsageProblem(f"/copy {one_line(argument, 60)}: only `code` or `code N` can be said")
    text = clean(answer).strip("\n")
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise UsageProblem(
            f"{len(data):,} bytes are more than terminals take", hint=f"at most {MAX_BYTES:,}; /export writes a file"
        )
    output = context.io.display()
    output.write_raw(sequence(data, tmux=bool(os.environ.get("TMUX"))))
    output.flush()
    lines = text.count("\n") + 1
    return SlashOutcome([f"  {plural(lines, 'line')} sent to the clipboard of the terminal"])


def sequence(data: bytes, *, tmux: bool) -> str:
    """Return what makes a terminal take `data` as its clipboard. tmux: it is to go through one to the terminal."""
    plain = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    return plain + ("\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\" if tmux else "")


def blocks(text: str) -> list[str]:
    """Return the fenced blocks of code in a text of Markdown, an open one at its end too."""
    found: list[list[str]] = []
    fence = ""
    for line in text.split("\n"):
        bare = line.strip()
        mark = bare[:3]
        if not fence and mark in ("```", "~~~"):
            fence = bare[: len(bare) - len(bare.lstrip(mark[0]))]
            found.append([])
        elif fence and bare.startswith(fence) and not bare.strip(fence[0]):
            fence = ""
        elif fence:
            found[-1].append(line)
    return ["\n".join(lines) for lines in found]


def _block(found: list[str], number: str) -> str:
    if not found:
        raise UsageProblem("there is no code in the last answer", hint="/copy takes the whole of it")
    if not number:
        return found[-1]
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= len(found)):
        raise UsageProblem(f"the last answer has {plural(len(found), 'block')} of code, no {one_line(number, 20)}")
    return found[int(number) - 1]


def _last_answer(context: SlashContext) -> str | None:
    for item in reversed(context.session.state.talk):
        if isinstance(item, AgentItem) and (text := context.io.text(item.fact.text)).strip():
            return text
    return None

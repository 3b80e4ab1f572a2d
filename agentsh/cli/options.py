"""What `new` and `resume` are both told. Light, so that a command can look at its words before much is loaded."""

import sys
from dataclasses import dataclass
from pathlib import Path

from agentsh.cli.piped import need_prompt, piped_prompt


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a command that runs a session, as given. None: the settings decide.

    images: files that go along with the first message.
    plain: talk line by line, even where that is no terminal.
    """

    prompt: str | None
    model: str | None
    mode: str | None
    print_only: bool
    json: bool
    max_steps: int | None
    max_cost_usd: float | None
    budget_tokens: int | None = None
    images: tuple[Path, ...] = ()
    plain: bool = False

    @property
    def alone(self) -> bool:
        """Whether one prompt is run without a terminal."""
        if self.print_only or self.json:
            return True
        return not self.plain and not (sys.stdin.isatty() and sys.stdout.isatty())

    @property
    def seen(self) -> bool:
        """Whether somebody sits at a terminal, who can be told and asked."""
        return not self.alone and sys.stdin.isatty() and sys.stdout.isatty()

    def first_prompt(self) -> str | None:
        """Return the prompt to begin with, read from stdin where it comes from there; None to ask for it.

        Raises:
            UsageProblem: nobody can be asked, and there is none.
        """
        if self.alone:
            return need_prompt(piped_prompt(self.prompt))
        return piped_prompt(self.prompt) if self.prompt == "-" else self.prompt

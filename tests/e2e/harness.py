"""Drives the installed `agentsh` command as a process, as a user's shell would."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).parent / "agentsh"


@dataclass
class Done:
    """How a run ended."""

    code: int
    out: bytes
    err: str
    seconds: float

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Shell:
    """A user with a home of sessions and a directory to stand in."""

    home: Path
    cwd: Path
    base_url: str | None = None
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def clean_up(self) -> None:
        """End what a failed test left behind."""
        for process in self.started:
            process.kill()
            process.wait(timeout=20)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def env(self, **more: str) -> dict[str, str]:
        keep = {
            k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "AGENTSH_", "NO_COLOR", "COLUMNS"))
        }
        env = {**keep, "HOME": str(self.home.parent), "AGENTSH_HOME": str(self.home), "AGENTSH_MODEL": "scripted"}
        if self.base_url:
            env |= {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": "sk-test"}
        return {**env, **more}

    def run(
        self, *args: str, stdin: bytes = b"", timeout_s: float = 99, also: Mapping[str, str] | None = None, **env: str
    ) -> Done:
        """Run a command to its end. env, also: variables besides the usual ones."""
        start = time.monotonic()
        done = subprocess.run(
            [COMMAND, *args],
            cwd=self.cwd,
            env=self.env(**(also or {}), **env),
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr.decode(), time.monotonic() - start)

    def inside(self, *args: str) -> Done:
        """Run a command in this process, without what another costs; only for those that end by themselves."""
        from agentsh.cli.main import run

        out, err, before, was = io.BytesIO(), io.StringIO(), Path.cwd(), dict(os.environ)
        stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        start = time.monotonic()
        try:
            os.environ.clear()
            os.environ.update(self.env())
            os.chdir(self.cwd)
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(err):
                code = run([*args])
            stdout.flush()
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(was)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return Done(code, out.getvalue(), err.getvalue(), time.monotonic() - start)

    def start(self, *args: str, **env: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [COMMAND, *args],
            cwd=self.cwd,
            env=self.env(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def introduced(self) -> None:
        """Let it not be the first run of the user, which would tell three lines that are no facts."""
        file = self.home.parent / ".agentsh" / "first-run.json"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text('{"introduced": true}', encoding="utf-8")

    @property
    def ids(self) -> list[str]:
        return sorted(p.name for p in (self.home / "sessions").iterdir()) if (self.home / "sessions").is_dir() else []

    def log(self, session: str | None = None) -> Path:
        return self.home / "sessions" / (session or self.ids[-1]) / "events.jsonl"

    def events(self, session: str | None = None) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log(session).read_bytes().splitlines()[1:]]

    def workspace(self, session: str | None = None) -> Path:
        return self.home / "workspaces" / (session or self.ids[-1])


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [e["payload"] for e in events if e["type"] == kind]


def stop(process: "subprocess.Popen[bytes]", number: int = signal.SIGKILL) -> tuple[int, bytes, bytes]:
    """Send a signal and collect what the process said."""
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    return process.returncode, out, err


def wait_for(condition: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)

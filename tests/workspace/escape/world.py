"""A world around a sandbox that must stay as it is: homes, keys, sockets and a process of somebody else."""

import ctypes
import os
import platform
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal

from agentsh.ports.workspace import ProcessResult
from agentsh.workspace.bounds import bounds_of
from agentsh.workspace.git_guard import DECIDING
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.sandbox_bwrap import Bubblewrap
from agentsh.workspace.sandbox_landlock import HELPER, Landlock
from agentsh.workspace.sandbox_port import Bounds, Launch, Limits, Sandbox
from tests.workspace.escape.attempts import Attempt

SECRET = "canary-of-somebody-else"
NOBODY = 65_534
Kind = Literal["none", "bwrap", "landlock"]
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
SYSTEM_PYTHON = "/usr/bin/python3"
_KEYCTL, _ADD_KEY = (250, 248) if platform.machine() == "x86_64" else (219, 217)
_LIBC = ctypes.CDLL(None, use_errno=True)


class AsNobody:
    """A sandbox that an ordinary user makes, where the tests run as root."""

    owns_processes = True

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self.name = inner.name
        self.guards = inner.guards

    def launch(self, argv: Sequence[str], cwd: str) -> Launch:
        launch = self._inner.launch(argv, cwd)
        launch.argv = [*AS_NOBODY, *launch.argv]
        return launch


class World:
    """Everything that a command could harm or read. root: its workspace."""

    def __init__(self, *, as_nobody: bool = False) -> None:
        self._stack = ExitStack()
        self._as_nobody = as_nobody
        self.token = "agentsh" + uuid.uuid4().hex[:12]
        self.nap = str(100_000 + uuid.uuid4().int % 800_000)
        self.base = _base()
        self.user, self.home = self.base / "user", self.base / "agentsh"
        self.root = self.home / "workspaces" / "own"
        self.tmp = self.base / "tmp-of-own"
        self._files()
        self.process = self._somebody()
        self.listening = self._listeners()
        self._share()
        if as_nobody:
            _give(self.base, NOBODY)
        self.before = self._state()

    def _files(self) -> None:
        other = self.home / "workspaces" / "other"
        for directory in (
            self.root, self.tmp, other, self.home / "sessions" / "other", self.home / "blobs" / "aa",
            self.user / "dir", self.user / ".ssh", self.user / ".aws",
        ):  # fmt: skip
            directory.mkdir(parents=True)
        for file in (
            other / "file", self.home / "sessions" / "other" / "events.jsonl", self.home / "blobs" / "aa" / "blob",
            self.home / "agentsh.toml", self.user / ".ssh" / "id_rsa", self.user / ".aws" / "credentials",
            self.user / ".netrc",
        ):  # fmt: skip
            file.write_text(SECRET + "\n")
        for file in (self.user / "file", self.user / "dir" / "inner", self.user / ".bashrc"):
            file.write_text("as it was\n")
        self.other_tmp = Path(tempfile.mkdtemp(prefix="agentsh-tmp-other-"))
        self._stack.callback(shutil.rmtree, self.other_tmp, ignore_errors=True)
        (self.other_tmp / "secret").write_text(SECRET)
        git = ["git", "-C", str(self.root), "-c", "init.defaultBranch=main"]
        subprocess.run([*git, "init", "-q"], check=True)
        (self.root / "README").write_text("hello\n")
        if self._as_nobody:
            _give(self.other_tmp, NOBODY)

    def _somebody(self) -> "subprocess.Popen[bytes]":
        prefix = AS_NOBODY if self._as_nobody else []
        process = subprocess.Popen(
            [*prefix, "sleep", "86400"], env={"PATH": os.defpath + ":/usr/bin:/bin", "KEY": SECRET}, cwd="/"
        )
        while b"sleep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0]:
            time.sleep(0.01)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def _listeners(self) -> list[socket.socket]:
        tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        files, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        self.socket = str(self.base / "s")
        files.bind(self.socket)
        os.chmod(self.socket, 0o777)
        abstract.bind("\0" + self.token)
        self.port, self.udp = tcp.getsockname()[1], udp.getsockname()[1]
        for each in (tcp, udp, files, abstract):
            if each is not udp:
                each.listen(8)
            each.setblocking(False)
            self._stack.callback(each.close)
        return [tcp, udp, files, abstract]

    def _share(self) -> None:
        """Put the secret into shared memory and into the session's keyring."""
        self.shm = 1 + uuid.uuid4().int % 2_000_000_000
        _LIBC.shmat.restype = ctypes.c_void_p
        number = _LIBC.shmget(self.shm, 4096, 0o1000 | 0o666)
        address = _LIBC.shmat(number, None, 0)
        ctypes.memmove(address, SECRET.encode() + b"\0", len(SECRET) + 1)
        self._stack.callback(lambda: _LIBC.shmctl(number, 0, None))
        self._stack.callback(lambda: _LIBC.shmdt(ctypes.c_void_p(address)))
        key = SECRET.encode()
        _LIBC.syscall(_ADD_KEY, b"user", self.token.encode(), key, ctypes.c_size_t(len(key)), -3)

    def close(self) -> None:
        self._stack.close()
        shutil.rmtree(self.base, ignore_errors=True)
        for path in self._elsewhere():
            with suppress(OSError):
                path.unlink()

    # What must not happen -----------------------------------------------------------------------------------------

    def line(self, attempt: Attempt) -> str:
        return attempt.line.format(
            home=self.home, user=self.user, root=self.root, tmp=self.other_tmp, pid=self.process.pid, port=self.port,
            udp=self.udp, socket=self.socket, token=self.token, nap=self.nap, shm=self.shm, keyctl=_KEYCTL,
            shared=f"/tmp/{self.token}", disk=_disk(),
        )  # fmt: skip

    def harm(self, result: ProcessResult) -> list[str]:
        """Say what a command did outside of its workspace, or learned."""
        found = [f"printed {word}" for word in (SECRET, "ESCAPED") if word in result.output]
        time.sleep(0.02)  # a signal takes a moment
        now = self._state()
        found += [
            f"changed {path}: {self.before.get(path)} -> {now.get(path)}"
            for path in sorted(self.before.keys() | now.keys())
            if self.before.get(path) != now.get(path)
        ]
        if self.process.poll() is not None:
            found.append("killed a process")
        else:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            if fields[0] == "T" or int(fields[16]) != os.getpriority(os.PRIO_PROCESS, 0):
                found.append("stopped or reniced a process")
                os.kill(self.process.pid, signal.SIGCONT)
        found += [f"reached socket {i}" for i, each in enumerate(self.listening) if _reached(each)]
        found += [f"left process {pid}" for pid in self.left()]
        return found + [f"made {path}" for path in self._elsewhere() if os.path.lexists(path)]

    def left(self) -> list[int]:
        """Kill and return the processes of an attempt that are still there."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with suppress(OSError):
                    if self.nap.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0"):
                        found.append(int(name))
                        os.kill(int(name), signal.SIGKILL)
        return found

    def _elsewhere(self) -> list[Path]:
        places = ("/tmp", "/dev/shm", "/etc/cron.d", "/usr/local/bin")
        return [Path(place) / self.token for place in places] + [Path(f"/etc/ld.so.preload.{self.token}")]

    def _state(self) -> Mapping[str, object]:
        """Every file that is not the workspace's own, and what in the workspace decides what others run."""
        found: dict[str, object] = {}
        for top, directories, files in os.walk(self.base):
            inside = Path(top) == self.root or self.root in Path(top).parents
            if inside or Path(top) == self.tmp:
                directories[:] = [".git"] if Path(top) == self.root else [d for d in directories if d == "hooks"]
                files = [f for f in files if Path(top).name == "hooks" or f in DECIDING]
            for name in [*directories, *files]:
                path = os.path.join(top, name)
                info = os.lstat(path)
                listed = stat.S_ISDIR(info.st_mode)
                times = () if listed else (info.st_mtime_ns,)
                text = Path(path).read_bytes() if stat.S_ISREG(info.st_mode) else b""
                extra = os.listxattr(path, follow_symlinks=False)
                if not (inside and listed):
                    found[path] = (oct(info.st_mode), info.st_uid, *times, text, extra)
        found["passwd"] = self.token in Path("/etc/passwd").read_text()
        return found

    # Running ------------------------------------------------------------------------------------------------------

    def bounds(self, limits: Limits | None = None) -> Bounds:
        return bounds_of(self.root, tmp=str(self.tmp), homes=[self.home, self.user / ".agentsh"], limits=limits)

    def workspace(self, kind: Kind, limits: Limits | None = None) -> LocalWorkspace:
        sandbox: Sandbox | None = None
        if kind == "bwrap":
            sandbox = Bubblewrap(self.bounds(limits))
        elif kind == "landlock":
            sandbox = self._landlock(limits)
        if sandbox is not None and self._as_nobody:
            sandbox = AsNobody(sandbox)
        return LocalWorkspace(self.root, session=self.token, sandbox=sandbox, limits=limits)

    def _landlock(self, limits: Limits | None) -> Sandbox:
        if not self._as_nobody:
            return Landlock(self.bounds(limits))
        helper = shutil.copy(HELPER, self.base / "helper.py")
        os.chmod(helper, 0o644)
        self.before = self._state()
        python = SYSTEM_PYTHON if os.path.exists(SYSTEM_PYTHON) else sys.executable
        return Landlock(self.bounds(limits), python=python, helper=str(helper))


def _base() -> Path:
    """Make the directory of a world: not in /tmp, which is private in there, nor below a real home if possible."""
    for place in ("/srv", "/opt", os.path.expanduser("~"), os.getcwd()):
        if os.access(place, os.W_OK):
            base = Path(tempfile.mkdtemp(prefix="agentsh-world-", dir=place))
            os.chmod(base, 0o755)
            return base
    raise AssertionError("there is no place for a world")


def _disk() -> str:
    for name in sorted(os.listdir("/sys/block")) if os.path.isdir("/sys/block") else ():
        return Path(f"/sys/block/{name}/dev").read_text().strip().replace(":", " ")
    return "8 0"


def _give(top: Path, uid: int) -> None:
    for directory, directories, files in os.walk(top):
        for name in [".", *directories, *files]:
            os.chown(os.path.join(directory, name), uid, uid, follow_symlinks=False)


def _reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            return bool(listener.recv(10))
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True

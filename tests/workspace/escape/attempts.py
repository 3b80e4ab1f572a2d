"""What a command may try to get out of its sandbox: the table behind docs/sandbox.md.

Each attempt is a shell line that does something outside of its workspace, or prints the secret of somebody else, or
prints ESCAPED. Names in braces are filled in by `world.World`. What stopped it is what the table of the page says.
"""

from dataclasses import dataclass

PY = "python3 -c"

# ruff: noqa: E501 - a command is one line


@dataclass(frozen=True, slots=True)
class Attempt:
    """name: in the table. line: the command. bwrap, landlock: what stops it there; None where it goes through.

    control: it works without a sandbox, which a test shows; False where that would harm the machine, or where it
    would take what the machine need not have. root: only root can try.
    """

    name: str
    line: str
    bwrap: str
    landlock: str | None
    control: bool = True
    root: bool = False


RACE = "for i in 1 2 3 4 5 6 7 8 9; do (ln -sfn {user} d; ln -sfn . d) & echo x > d/file; ln -sfn {user} d; echo x > d/file; done; wait"
CHMOD_RACE = "touch own; for i in 1 2 3 4 5 6 7 8; do (ln -sfn {user}/file t; ln -sfn own t) & chmod 0777 t; done; wait; ln -sfn {user}/file t; chmod 0777 t"
DAEMON = (
    PY
    + " \"import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); [os.close(f) for f in (0, 1, 2)]; os.execvp('sleep', ['sleep', '{nap}'])\"; sleep 0.2"
)
FDS = PY + " \"import os; print(*['ESCAPED' for f in os.listdir('/proc/self/fd') if int(f) > 3])\""
_C = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
_STACK = "import re; lo, hi = [int(x, 16) for x in re.search('([0-9a-f]+)-([0-9a-f]+) .*stack', open('/proc/{pid}/maps').read()).groups()]; "
MEMORY = (
    PY
    + ' "'
    + _STACK
    + "f = open('/proc/{pid}/mem', 'rb'); f.seek(lo); print(re.findall(b'canary[a-z-]+', f.read(hi - lo)))\""
)
PTRACE = PY + ' "' + _C + "print('ESCAPED' if c.ptrace(16, {pid}, 0, 0) == 0 else 'no'); c.ptrace(17, {pid}, 0, 0)\""
VMREAD = (
    PY + ' "' + _C + _STACK + "b = ctypes.create_string_buffer(hi - lo); "
    "v = lambda a: (ctypes.c_size_t * 2)(a, hi - lo); "
    "n = c.process_vm_readv({pid}, v(ctypes.addressof(b)), 1, v(lo), 1, 0); print(re.findall(b'canary[a-z-]+', b.raw), n)\""
)
KEYRING = (
    PY
    + ' "'
    + _C
    + (
        "c.syscall.restype = ctypes.c_long; k = c.syscall({keyctl}, 10, -3, b'user', b'{token}', 0); "
        'b = ctypes.create_string_buffer(200); c.syscall({keyctl}, 11, k, b, 200); print(b.value.decode())"'
    )
)
FAMILIES = (
    PY
    + " \"import socket\nfor f in (40, 17, 38):\n    try: socket.socket(f, 3 if f == 17 else 1 if f == 40 else 5); print('ESCAPED', f)\n    except OSError: pass\""
)
SHM = (
    PY
    + ' "'
    + _C
    + (
        "c.shmat.restype = ctypes.c_void_p; i = c.shmget({shm}, 0, 0); a = c.shmat(i, None, 0o10000) if i >= 0 else None; "
        "print(ctypes.string_at(a, 100).split(bytes(1))[0].decode() if a and a < 2**63 else 'no')\""
    )
)
URING = (
    PY
    + ' "'
    + _C
    + "c.syscall.restype = ctypes.c_long; print('ESCAPED' if c.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0 else 'no')\""
)
TIOCSTI = PY + " \"import fcntl, os; m, s = os.openpty(); fcntl.ioctl(s, 0x5412, b'x'); print('ESCAPED')\""
MEMFD = (
    PY
    + " \"import os, shutil; f = os.memfd_create('x'); w = open(f, 'wb', closefd=False); w.write(open(shutil.which('touch'), 'rb').read()); w.flush(); os.execv('/proc/self/fd/%d' % f, ['touch', '{user}/new'])\""
)
ORPHAN = (
    PY
    + ' "'
    + _C
    + "os.fork() and os._exit(0); os.setsid(); c.prctl(1, 0, 0, 0, 0); os.fork() and os._exit(0); [os.close(f) for f in (0, 1, 2)]; "
    "os.execve('/bin/sleep', ['sleep', '{nap}'], {{}})\"; sleep 0.2"
)
HANDLE = (
    PY
    + ' "'
    + _C
    + (
        "h = ctypes.create_string_buffer(b'\\x80' + bytes(150), 200); m = ctypes.c_int(); "
        "c.name_to_handle_at(-100, b'{user}/file', h, ctypes.byref(m), 0); d = os.open('{root}', 0); "
        "f = c.open_by_handle_at(d, h, 1); f >= 0 and os.write(f, b'ESCAPED')\""
    )
)

RO = "read-only mount"
LL = "Landlock: no right to write"
HIDDEN = "hidden by an empty mount"
NOREAD = "Landlock: no right to read"
PIDS = "own process namespace"
NET = "own network namespace"
CAPS = "no capabilities"
SEC = "seccomp"
SCOPE = "Landlock: signals stay inside"
ASKED = "the helper makes such calls, where it may write"
UNDONE = "ended at once, and undone"

ATTEMPTS = (
    # files outside, by every way of naming them
    Attempt("`..` read", "cat ../other/file", HIDDEN, NOREAD),
    Attempt("`..` write", "echo x > ../other/file", HIDDEN, LL),
    Attempt("absolute read of another session", "cat {home}/sessions/other/events.jsonl", HIDDEN, NOREAD),
    Attempt("absolute read of another workspace", "cat {home}/workspaces/other/file", HIDDEN, NOREAD),
    Attempt("write into another workspace", "echo x > {home}/workspaces/other/file", HIDDEN, LL),
    Attempt("configuration of the home", "cat {home}/agentsh.toml", HIDDEN, NOREAD),
    Attempt("blobs of the home", "cat {home}/blobs/aa/blob", HIDDEN, NOREAD),
    Attempt("absolute write", "echo x > {user}/file", RO, LL),
    Attempt("append", "echo x >> {user}/file", RO, LL),
    Attempt("new file outside", "touch {user}/new", RO, LL),
    Attempt("new directory outside", "mkdir {user}/newdir", RO, LL),
    Attempt("delete outside", "rm -f {user}/file", RO, LL),
    Attempt("delete a directory outside", "rm -rf {user}/dir", RO, LL),
    Attempt("rename outside", "mv {user}/file {user}/moved", RO, LL),
    Attempt("move over a file outside", "echo x > f; mv -f f {user}/file", RO, LL),
    Attempt("copy over a file outside", "echo x > f; cp f {user}/file", RO, LL),
    Attempt("dd onto a file outside", "echo x | dd of={user}/file 2>&1", RO, LL),
    Attempt("truncate outside", "truncate -s 0 {user}/file", RO, LL),
    Attempt("chmod outside", "chmod 0777 {user}/file", RO, ASKED),
    Attempt("chmod outside, through a link", "ln -s {user}/file l; chmod 0777 l", RO, ASKED),
    Attempt("chmod outside, through /proc/self/root", "chmod 0777 /proc/self/root{user}/file ../../../user/file", RO, ASKED),
    Attempt("chmod outside, by a descriptor", PY + " \"import os; os.fchmod(os.open('{user}/file', 0), 0o777)\"", RO, ASKED),
    Attempt("race of a symlink against chmod", CHMOD_RACE, RO, ASKED),
    Attempt("times outside", "touch -d 2001-01-01 {user}/file", RO, ASKED),
    Attempt("times outside, by a descriptor", PY + " \"import os; os.utime(os.open('{user}/file', 0), (1, 1))\"", RO, ASKED),
    Attempt("owner outside", "chown 12345 {user}/file", RO, ASKED, root=True),
    Attempt("extended attribute outside", PY + " \"import os; os.setxattr('{user}/file', 'user.x', b'x')\"", RO, SEC),
    Attempt("symlink, then write through it", "ln -s {user}/file l; echo x > l", RO, LL),
    Attempt("symlink to a directory, then write", "ln -s {user} d; echo x > d/file", RO, LL),
    Attempt("symlink, then read a secret", "ln -s {user}/.ssh/id_rsa l; cat l", HIDDEN, NOREAD),
    Attempt("hard link, then write through it", "ln {user}/file h; echo x > h", RO, LL),
    Attempt("race of a symlink against a write", RACE, RO, LL),
    Attempt("cd out, then write", "cd {user} && echo x > file", RO, LL),
    Attempt("/proc/self/root", "echo x > /proc/self/root{user}/file", RO, LL),
    Attempt("program without a file (memfd)", MEMFD, RO, LL),
    Attempt("/proc/self/cwd", "cat /proc/self/cwd/../other/file", HIDDEN, NOREAD),
    Attempt("root of another process", "cat /proc/{pid}/root{user}/.ssh/id_rsa", PIDS, NOREAD),
    Attempt("root of a process, counted up", "for p in /proc/[0-9]*; do cat $p/root{user}/.ssh/id_rsa; done", HIDDEN, NOREAD),
    Attempt("descriptor opened for reading, reopened", "exec 3<{user}/file; echo x > /proc/self/fd/3", RO, LL),
    Attempt("descriptors that were inherited", FDS, "closed before the start", "closed before the start", control=False),
    Attempt("fifo outside", "mkfifo {user}/fifo", RO, LL),
    Attempt("device node", "mknod disk b {disk} && head -c 512 disk && echo ESCAPED", CAPS, "Landlock: no right to make", False, True),
    Attempt("disk of the machine", "head -c 16 /dev/vd? /dev/sd? /dev/nvme?n? 2>/dev/null | grep -q . && echo ESCAPED", "own /dev", NOREAD, False, True),
    Attempt("memory of the machine", "head -c 16 /dev/mem | grep -q . && echo ESCAPED", "own /dev", NOREAD, False, True),
    Attempt("file handles (open_by_handle_at)", HANDLE, CAPS, CAPS, True, True),
    Attempt("move the workspace itself", "mv {root} {root}-moved", RO, LL),
    Attempt("/tmp of another session", "cat {tmp}/secret", "own /tmp", NOREAD),
    Attempt("/tmp of the machine", "echo x > {shared}", "own /tmp", LL),
    Attempt("/dev/shm of the machine", "echo x > /dev/shm/{token}", "own /dev", LL),
    # keys and the environment
    Attempt("environment of the command", "env; cat /proc/self/environ", "scrubbed", "scrubbed", control=False),
    Attempt("environment of another process", "tr '\\0' '\\n' < /proc/{pid}/environ", PIDS, "Landlock: no tracing"),
    Attempt("environments, counted up", "cat /proc/[0-9]*/environ | tr '\\0' '\\n'", PIDS, "Landlock: no tracing"),
    Attempt("private key of ssh", "cat {user}/.ssh/id_rsa", HIDDEN, NOREAD),
    Attempt("credentials of aws", "cat {user}/.aws/credentials", HIDDEN, NOREAD),
    Attempt(".netrc", "cat {user}/.netrc", HIDDEN, NOREAD),
    Attempt("search for keys", "grep -rs canary {user} {home}/sessions {home}/workspaces/other; find {user} -name 'id_*' -exec cat {{}} +", HIDDEN, NOREAD),
    Attempt("keyring of the kernel", KEYRING, SEC, SEC),
    # processes
    Attempt("memory of another process", MEMORY, PIDS, "Landlock: no tracing"),
    Attempt("ptrace", PTRACE, PIDS, SEC),
    Attempt("process_vm_readv", VMREAD, PIDS, SEC),
    Attempt("kill another session's process", "kill -9 {pid}", PIDS, SCOPE),
    Attempt("kill by descriptor", PY + " \"import os,signal; signal.pidfd_send_signal(os.pidfd_open({pid}), 9)\"", PIDS, SCOPE),
    Attempt("stop another session's process", "kill -STOP {pid}", PIDS, SCOPE),
    Attempt("renice another process", "renice -n 19 -p {pid}", PIDS, SEC),
    Attempt("signals to all, and to the parent", "kill -9 $PPID -1; kill -TERM $PPID -1; sleep 0.1", PIDS, SCOPE, control=False),
    Attempt("input typed into a terminal (TIOCSTI)", TIOCSTI, SEC, "Landlock: no right to open", control=False),
    Attempt("background process", "sleep {nap} & echo", "ends with its namespace", "ended by the helper", control=False),
    Attempt("setsid", "setsid sleep {nap} & echo", "ends with its namespace", "ended by the helper", control=False),
    Attempt("setsid without the mark", "env -i setsid sleep {nap} & echo", "ends with its namespace", "ended by the helper"),
    Attempt("double fork", DAEMON, "ends with its namespace", "ended by the helper", control=False),
    Attempt("double fork, deaf to the death of its parent", ORPHAN, "ends with its namespace", "ended by the helper"),
    Attempt("nohup, deaf to signals", "trap '' TERM HUP INT; nohup sleep {nap} >/dev/null 2>&1 & echo", "ends with its namespace", "ended by the helper", control=False),
    # network and sockets
    Attempt("TCP to this machine", PY + " \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\"", NET, SEC),
    Attempt("TCP by bash", "exec 3<>/dev/tcp/127.0.0.1/{port}", NET, SEC),
    Attempt("UDP to this machine", PY + " \"import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', {udp}))\"", NET, SEC),
    Attempt("socket in the file system (docker, ssh-agent)", PY + " \"import socket; socket.socket(1).connect('{socket}')\"", "covered one by one", SEC),
    Attempt("abstract socket (X11)", PY + " \"import socket; socket.socket(1).connect(chr(0) + '{token}')\"", NET, SCOPE),
    Attempt("vsock and packet sockets", FAMILIES, SEC, SEC, control=False),
    Attempt("sockets by io_uring", URING, SEC, SEC, control=False),
    Attempt("shared memory of System V", SHM, "own IPC namespace", SEC),
    # namespaces and mounts
    Attempt("remount for writing", "mount -o remount,rw,bind / && echo x > {user}/file", CAPS, CAPS, control=False),
    Attempt("unmount what hides", "umount -l {home}; umount -l {user}/.ssh; cat {user}/.ssh/id_rsa", CAPS, NOREAD),
    Attempt("bind over", "mount --bind {user} . && echo x > file", CAPS, CAPS, False, True),
    Attempt("new user namespace", "unshare -Urm sh -c 'mount -o remount,rw,bind / && echo x > {user}/file; umount -l {user}/.ssh; cat {user}/.ssh/id_rsa'", "no further user namespaces", SEC, control=False),
    Attempt("chroot", "chroot /proc/{pid}/root cat {user}/.ssh/id_rsa", CAPS, CAPS, True, True),
    Attempt("nsenter", "nsenter -t {pid} -m cat {user}/.ssh/id_rsa", PIDS, SEC, True, True),
    Attempt("kernel settings", "cat /proc/sys/kernel/core_pattern > was; echo '|/bin/false' > /proc/sys/kernel/core_pattern && cat was > /proc/sys/kernel/core_pattern && echo ESCAPED", RO, LL, True, True),
    Attempt("/sys", "cat /sys/kernel/profiling /sys/kernel/mm/transparent_hugepage/enabled >/dev/null; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled && echo ESCAPED", RO, LL, False, True),
    # what others run later
    Attempt("hook of git", "echo 'echo x' > .git/hooks/pre-commit", "hooks mounted read-only", UNDONE),
    Attempt("hook of git, as a link", "echo x > evil; ln -s ../../evil .git/hooks/pre-commit", "hooks mounted read-only", UNDONE),
    Attempt("another directory of hooks", "mv .git/hooks .git/old; mkdir .git/hooks; echo x > .git/hooks/pre-commit", "a mount cannot be moved", UNDONE),
    Attempt("configuration of git", "git config core.fsmonitor ./evil", "configuration mounted read-only", UNDONE),
    Attempt("configuration of git, appended", "echo '[core] fsmonitor = ./evil' >> .git/config", "configuration mounted read-only", UNDONE),
    Attempt("configuration of another git directory (commondir)", "cp -r .git evil; echo ../evil > .git/commondir", UNDONE, UNDONE),
    Attempt("configuration of a worktree", "echo '[core] fsmonitor = ./evil' > .git/config.worktree", UNDONE, UNDONE),
    Attempt("another .git in its place", "cp -r .git other; mv .git old; mv other .git; echo x >> .git/config", "a mount cannot be moved", UNDONE),
    Attempt("start of the shell", "echo 'echo x' >> {user}/.bashrc", RO, LL),
    Attempt("keys that may log in", "echo key >> {user}/.ssh/authorized_keys", HIDDEN, LL),
    Attempt("autostart", "mkdir -p {user}/.config/autostart && echo x > {user}/.config/autostart/x.desktop", RO, LL),
    Attempt("cron", "echo '* * * * * root true' > /etc/cron.d/{token}", RO, LL, False, True),
    Attempt("users of the machine", "echo '{token}::0:0::/:/bin/sh' >> /etc/passwd", RO, LL, False, True),
    Attempt("a program of the machine", "cp /bin/true /usr/local/bin/{token}", RO, LL, False, True),
    Attempt("LD_PRELOAD for all", "echo {user}/evil.so > /etc/ld.so.preload.{token}", RO, LL, False, True),
)  # fmt: skip

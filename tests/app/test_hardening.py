"""The environment of the process is not readable for others once it is hardened."""

import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux only")
def test_a_hardened_process_belongs_to_root_in_proc() -> None:
    code = (
        "import ctypes, os, resource\n"  # while it may still read them
        "from agentsh.app.hardening import harden\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "print(harden(), os.stat('/proc/self/environ').st_uid)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "0"]

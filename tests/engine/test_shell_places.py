"""In which directories a command of a line may find itself: none that is outside goes unasked, and no line is asked
about that only goes in and out again.
"""

import os
from pathlib import Path

import pytest

from agentsh.engine.shell.judge import judge
from agentsh.workspace.local import LocalWorkspace

LEADS_OUT = """
cd src && for i in 1 2 3; do cd ..; done && cat passwd
cd src && while true; do cd ..; cat passwd; done
while cd ..; do cat passwd; done
cd src/a; until false; do cd ..; done
cd src && for i in 1 2; do eval 'cd ..'; done; cat passwd
cd src && trap 'cd ..' DEBUG && ls && ls && cat passwd
cat here/../x
cat < here/../x
git -C here/.. log
cd here; cat ../x
cd here && cat ../x
cd src/up; cat ../x
cd src; cd ..; cat ../x
cd src; cat ../../x
cd src; cd ../..
cd src && ls; cd .. && cat ../x
false && cd src; cat ../x
ls || cd src; cat ../x
cd nothere && cd ROOT/src; cat ../x
cd nothere/../src; cat ../x
cd nothere; cat ../x
cd nothere; ls; cd ..
cd f.py; cat ../x
cd src & cat ../x
cd src | cat; cat ../x
rm -r src; cd src; cat ../x
pushd src; cd a; popd; cat ../x
cd src/a; popd; cat ../../../x
cd() { :; }; cd src; cat ../x
eval 'cd() { :; }'; cd src; cat ../x
(cd src); cat ../x
bash -c 'cd src'; cat ../x
if cd src; then ls; fi; cat ../x
! cd src; cat ../x
cd src >/dev/null; cat ../x
time cd src; cat ../x
""".strip().split("\n")

STAYS = """
cd src; ls; cd ..
cd src && ls && cd ..
cd src && cd a && ls && cd ../..
cd src && ls; cd .. && ls
cd src; cat ../f.py
ls && cd src && cat ../f.py
cd nothere && cat ../f.py
cd src; cd a; cat ../../f.py; cd ..; cat ../f.py
cd ROOT/src; cat ../f.py; cd ..
for i in 1 2; do (cd src && ls); done
(cd src; ls); ls
pushd src; ls; popd
""".strip().split("\n")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> LocalWorkspace:
    root = tmp_path_factory.mktemp("places") / "ws"
    (root / "src" / "a").mkdir(parents=True)
    (root / "f.py").touch()
    (root / "here").symlink_to(".")
    (root / "src" / "up").symlink_to("..")
    return LocalWorkspace(root, session=f"test-places-{os.getpid()}")


@pytest.mark.parametrize(("harmless", "lines"), [(False, LEADS_OUT), (True, STAYS)])
def test_where_a_line_goes(workspace: LocalWorkspace, harmless: bool, lines: list[str]) -> None:
    assert Path(workspace.root, "src").is_dir()
    wrong = [line for line in lines if judge(line.replace("ROOT", workspace.root), workspace).harmless != harmless]
    assert not wrong


@pytest.mark.parametrize(
    ("harmless", "line"),
    [
        (True, "cat <<EOF | head\nhello\nEOF"),
        (True, "cat <<'EOF' | head -1 | wc -l\n$(evil)\nEOF\nls"),
        (True, "cat <<-EOF | head\n\thello\n\tEOF"),
        (False, "cat <<EOF | sh\nls\nEOF"),
        (False, "cat <<EOF | xargs rm\nx\nEOF"),
        (False, "cat <<EOF | head\n$(evil)\nEOF"),
        (False, "cat <<EOF | head > out\nx\nEOF"),
        (False, "cat <<EOF | head \\\nevil\nEOF"),
        (False, "cat <<EOF | cat <<B\nx\nEOF\ny\nB"),
        (False, "cat <<EOF | head 'a\nEOF\nevil'\nEOF"),
        (False, "cat <<EOF | (head; evil)\nx\nEOF"),
        (False, "cat <<EOF |\nx\nEOF\nevil"),
    ],
)
def test_a_here_document_that_goes_into_a_pipe(workspace: LocalWorkspace, harmless: bool, line: str) -> None:
    assert judge(line, workspace).harmless == harmless


COUNTS = [
    "n=1; echo $((n+1))",
    "for i in 1 2 3; do echo $((i*2)); done",
    "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
    "n=1 && echo $((n+1))",
    'i=0; while [[ $i -lt 3 ]]; do echo "$i"; i=$(( $i + 1 )); done',
    "cd . && for i in 1 2; do echo $((i+1)); done",
    "n=5; m=$((n*2)); echo $((m-1))",
    "i=0; for f in a b; do i=$((i+1)); done; echo $i",
    "n=1; echo $((n++))",
    "n=3; echo ${n}; echo $((${n}+1))",
]
COMPUTES = [
    "echo $((n+1))",
    "n=$(cat f); echo $((n+1))",
    "n='a[$(evil)]'; echo $((n+1))",
    "read n < f; echo $((n+1))",
    "n=1; read n < f; echo $((n+1))",
    "false && n=1; echo $((n+1))",
    "(n=1); echo $((n+1))",
    "n=1 & echo $((n+1))",
    "echo $((n+1)); n=1",
    "for i in 1 'a[$(evil)]'; do echo $((i)); done",
    "for i in $(cat f); do echo $((i)); done",
    "n=1; n+='a[$(evil)]'; echo $((n))",
    "n=1; m=n; echo $((m))",
    "n=1; echo $((a[n]))",
    "n=1; eval \"n='a[\\$(evil)]'\"; echo $((n))",
    "n=1; printf -v n %s 'a[$(evil)]'; echo $((n))",
    "false && for i in 1 2; do :; done; echo $((i))",
    "n=1 cat f; echo $((n))",
    "if false; then n=1; fi; echo $((n))",
    "n=1; { read n; } < f; echo $((n))",
    "n=1; for n in 'a[$(evil)]'; do echo $((n)); done",
    "n=1; select n in 'a[$(evil)]'; do echo $((n)); done",
    "f() { n=1; }; echo $((n))",
    "n=1; cat f | while read -r n; do echo $((n)); done",
    "n=1 | cat; echo $((n))",
    "! n=1; echo $((n+m))",
    "n=1; echo $((n+m))",
    "for i; do echo $((i)); done",
    "n=1; echo $((n=m))",
    "n=1; mapfile -t n < f; echo $((n))",
    "[ $i -lt 3 ]",
    "while n=1; false; do :; done; echo $((k))",
    "n=(1); echo $((n))",
    "n[0]=1; echo $((n))",
    "n=1; declare n=x; echo $((n))",
    "n=1; ${x:-$((n+y))}",
    "P=1; echo $((PATH+1))",
]


@pytest.mark.parametrize(("harmless", "lines"), [(True, COUNTS), (False, COMPUTES)])
def test_arithmetic_uses_only_what_holds_a_number(
    workspace: LocalWorkspace, harmless: bool, lines: list[str]
) -> None:
    """bash evaluates what a variable holds, and an index in that may run a command."""
    assert not [line for line in lines if judge(line, workspace).harmless != harmless]

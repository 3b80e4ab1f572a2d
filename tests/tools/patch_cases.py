"""Patches of one file: what it holds, the hunks, what it holds then. The wording is ours, the form is codex's."""

from textwrap import dedent

BOM = b"\xef\xbb\xbf"


def d(text: str) -> str:
    return dedent(text).lstrip("\n")


PYTHON = d("""
    import os


    class Dog:
        def name(self):
            return "dog"

        def age(self):
            return 1


    class Cat:
        def name(self):
            return "cat"

        def age(self):
            return 1
""")

# name: (bytes before, hunks, bytes after)
UPDATES: dict[str, tuple[bytes, str, bytes]] = {
    "one line": (b"a\nb\nc\n", "@@\n-b\n+B\n", b"a\nB\nc\n"),
    "the first line": (b"a\nb\n", "@@\n-a\n+A\n", b"A\nb\n"),
    "the last line": (b"a\nb\n", "@@\n-b\n+B\n", b"a\nB\n"),
    "the only line": (b"a\n", "@@\n-a\n+A\n", b"A\n"),
    "with context": (b"a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", b"a\nB\nc\n"),
    "context picks the place": (b"x\n1\ny\n1\n", "@@\n y\n-1\n+2\n", b"x\n1\ny\n2\n"),
    "the first of two places": (b"1\n1\n", "@@\n-1\n+2\n", b"2\n1\n"),
    "more lines than before": (b"a\nb\n", "@@\n-a\n+1\n+2\n+3\n", b"1\n2\n3\nb\n"),
    "fewer lines than before": (b"a\nb\nc\nd\n", "@@\n-a\n-b\n-c\n+x\n", b"x\nd\n"),
    "deletion": (b"a\nb\nc\n", "@@\n a\n-b\n c\n", b"a\nc\n"),
    "deletion of all": (b"a\nb\n", "@@\n-a\n-b\n", b""),
    "insertion in between": (b"a\nc\n", "@@\n a\n+b\n c\n", b"a\nb\nc\n"),
    "insertion at the start": (b"b\n", "@@\n+a\n b\n", b"a\nb\n"),
    "insertion behind the last line": (b"a\n", "@@\n a\n+b\n", b"a\nb\n"),
    "insertion without context": (b"a\n", "@@\n+b\n+c\n", b"a\nb\nc\n"),
    "insertion into an empty file": (b"", "@@\n+a\n", b"a\n"),
    "insertion below a header": (b"[one]\nx\n[two]\ny\n", "@@ [one]\n+w\n", b"[one]\nw\nx\n[two]\ny\n"),
    "two hunks": (b"a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D\n", b"A\nb\nc\nD\n"),
    "two hunks side by side": (b"a\nb\n", "@@\n-a\n+A\n@@\n-b\n+B\n", b"A\nB\n"),
    "three hunks of one kind": (b"1\n1\n1\n1\n", "@@\n-1\n+2\n@@\n-1\n+3\n@@\n-1\n+4\n", b"2\n3\n4\n1\n"),
    "order of minus and plus": (b"a\nb\n", "@@\n-a\n+A\n-b\n+B\n", b"A\nB\n"),
    "plus before minus": (b"a\nb\n", "@@\n+A\n-a\n b\n", b"A\nb\n"),
    "context between changes": (b"a\nb\nc\n", "@@\n-a\n+A\n b\n-c\n+C\n", b"A\nb\nC\n"),
    "no marker before the first hunk": (b"a\nb\n", "-a\n+A\n", b"A\nb\n"),
    "no marker, context first": (b"a\nb\n", " a\n-b\n+B\n", b"a\nB\n"),
    "an empty line of context": (b"a\n\nb\n", "@@\n a\n \n-b\n+B\n", b"a\n\nB\n"),
    "an empty line of context, bare": (b"a\n\nb\n", "@@\n a\n\n-b\n+B\n", b"a\n\nB\n"),
    "empty lines between hunks": (b"a\nb\n", "@@\n-a\n+A\n\n@@\n-b\n+B\n\n", b"A\nB\n"),
    "empty context for the end of the file": (b"a\nb\n", "@@\n-b\n+B\n \n", b"a\nB\n"),
    "an empty line taken away": (b"a\n\n\nb\n", "@@\n a\n-\n \n b\n", b"a\n\nb\n"),
    "an empty line put in": (b"a\nb\n", "@@\n a\n+\n b\n", b"a\n\nb\n"),
    "a header": (b"def a():\n  1\ndef b():\n  1\n", "@@ def b():\n-  1\n+  2\n", b"def a():\n  1\ndef b():\n  2\n"),
    "a header, found but for blanks": (b"  def b():  \n1\n", "@@ def b():\n-1\n+2\n", b"  def b():  \n2\n"),
    "two headers": (
        PYTHON.encode(), "@@ class Cat:\n@@     def age(self):\n-        return 1\n+        return 2\n",
        PYTHON.replace("return 1", "return 2").replace("return 2", "return 1", 1).encode()),
    "a header for each hunk": (
        PYTHON.encode(), "@@ class Dog:\n-        return \"dog\"\n+        return \"d\"\n"
        "@@ class Cat:\n-        return \"cat\"\n+        return \"c\"\n",
        PYTHON.replace('"dog"', '"d"').replace('"cat"', '"c"').encode()),
    "a header that is a line of the hunk": (b"x\nf()\ny\n", "@@ f()\n-f()\n+g()\n", b"x\ng()\ny\n"),
    "a header above a line of the hunk": (b"x\nf()\ny\nf()\n", "@@ f()\n x\n-f()\n+g()\n", b"x\ng()\ny\nf()\n"),
    "the same header twice": (b"f\n1\n2\n", "@@ f\n-1\n+x\n@@ f\n-2\n+y\n", b"f\nx\ny\n"),
    "a header that begins a line": (
        PYTHON.encode(), "@@ class Cat\n@@ def age\n-        return 1\n+        return 2\n",
        PYTHON.replace("return 1", "return 2").replace("return 2", "return 1", 1).encode()),
    "a header that begins a line, twice": (
        b"class A(B):\n1\n2\n", "@@ class A\n-1\n+x\n@@ class A\n-2\n+y\n", b"class A(B):\nx\ny\n"),
    "a header that begins a line of the hunk": (
        b"class A:\n  1\n", "@@ class A\n class A:\n-  1\n+  2\n", b"class A:\n  2\n"),
    "a header goes on with another word": (
        b"class As:\n1\nclass A_:\n1\nclass A:\n1\n", "@@ class A\n-1\n+2\n",
        b"class As:\n1\nclass A_:\n1\nclass A:\n2\n"),
    "a whole line goes before one that begins so": (
        b"f():\n1\nf()\n1\n", "@@ f()\n-1\n+2\n", b"f():\n1\nf()\n2\n"),
    "a whole line above goes before one below that begins so": (
        b"f\n1\n2\nf g\n2\n", "@@ f\n-1\n+x\n@@ f\n-2\n+y\n", b"f\nx\ny\nf g\n2\n"),
    "an insertion below a header that begins a line": (
        b"class A:\n  b\n", "@@ class A\n+  a\n", b"class A:\n  a\n  b\n"),
    "a header with a closing @@": (b"f\n1\n", "@@ f @@\n-1\n+2\n", b"f\n2\n"),
    "ranges of a unified diff": (b"a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", b"a\nB\n"),
    "ranges and a header": (b"1\nf\n1\n", "@@ -3 +3 @@ f\n-1\n+2\n", b"1\nf\n2\n"),
    "end of file": (b"x\ny\nx\n", "@@\n-x\n+z\n*** End of File\n", b"x\ny\nz\n"),
    "end of file, and it is not there": (b"x\ny\n", "@@\n-x\n+z\n*** End of File\n", b"z\ny\n"),
    "end of file, more hunks": (b"x\ny\n", "@@\n-x\n+1\n@@\n-y\n+2\n*** End of File\n", b"1\n2\n"),
    "a line that looks like a marker": (b"*** End Patch\nb\n", "@@\n *** End Patch\n-b\n+B\n", b"*** End Patch\nB\n"),
    "lines that look like sections": (
        b"*** Add File: x\n", "@@\n-*** Add File: x\n+*** Delete File: x\n", b"*** Delete File: x\n"),
    "lines that begin with signs": (b"-a\n+b\n", "@@\n--a\n++a\n +b\n", b"+a\n+b\n"),
    "lines that begin with @@": (b"@@ x\n", "@@\n-@@ x\n+@@ y\n", b"@@ y\n"),
    "comments": (b"# a\n# b\n", "@@\n # a\n-# b\n+# c\n", b"# a\n# c\n"),
    "tabs": (b"\tif x:\n\t\ty\n", "@@\n \tif x:\n-\t\ty\n+\t\tz\n", b"\tif x:\n\t\tz\n"),
    "trailing blanks stay where nothing changes": (b"a  \nb\n", "@@\n a  \n-b\n+B\n", b"a  \nB\n"),
    "very long line": (b"a" * 9_999 + b"\nb\n", "@@\n " + "a" * 9_999 + "\n-b\n+c\n", b"a" * 9_999 + b"\nc\n"),
    "regular expression characters": (b"a.*(b)\n", "@@\n-a.*(b)\n+\\1$0\n", b"\\1$0\n"),
    "form feed and other blanks in a line": (b"a\x0cb\nc\n", "@@\n a\x0cb\n-c\n+d\n", b"a\x0cb\nd\n"),
    "line separator": ("a\u2028b\nc\n".encode(), "@@\n-c\n+d\n", "a\u2028b\nd\n".encode()),
    # Line ends
    "CRLF": (b"a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n c\n", b"a\r\nB\r\nc\r\n"),
    "CRLF, more lines": (b"a\r\nb\r\n", "@@\n-b\n+1\n+2\n", b"a\r\n1\r\n2\r\n"),
    "CRLF, at the end": (b"a\r\nb\r\n", "@@\n+c\n", b"a\r\nb\r\nc\r\n"),
    "CRLF, the patch too": (b"a\r\nb\r\n", "@@\r\n-b\r\n+B\r\n", b"a\r\nB\r\n"),
    "LF, the patch CRLF": (b"a\nb\n", "@@\r\n-b\r\n+B\r\n", b"a\nB\n"),
    "CRLF, no line end at the end": (b"a\r\nb", "@@\n-a\n+A\n", b"A\r\nb"),
    "mixed, in the CRLF part": (b"a\nb\r\nc\n", "@@\n-b\n+B\n", b"a\nB\r\nc\n"),
    "mixed, in the LF part": (b"a\r\nb\nc\r\n", "@@\n-b\n+B\n", b"a\r\nB\nc\r\n"),
    "mixed, put between": (b"a\r\nb\n", "@@\n a\n+x\n b\n", b"a\r\nx\nb\n"),
    "lone CR stays": (b"a\rb\nc\n", "@@\n-c\n+d\n", b"a\rb\nd\n"),
    "lone CR at the end": (b"a\nb\r", "@@\n-a\n+A\n", b"A\nb\r"),
    "no line end at the end, elsewhere": (b"a\nb", "@@\n-a\n+A\n", b"A\nb"),
    "no line end at the end, as context": (b"a\nb", "@@\n-a\n+A\n b\n", b"A\nb"),
    "no line end at the end, replaced": (b"a\nb", "@@\n-b\n+B\n", b"a\nB\n"),
    "no line end at the end, one more": (b"a\nb", "@@\n b\n+c\n", b"a\nb\nc\n"),
    "no line end at the end, appended": (b"a\nb", "@@\n+c\n", b"a\nb\nc\n"),
    "no line end at the end, last one gone": (b"a\nb", "@@\n a\n-b\n", b"a\n"),
    "only line ends": (b"\n\n", "@@\n-\n", b"\n"),
    # Encodings
    "byte order mark": (BOM + b"a\nb\n", "@@\n-a\n+A\n", BOM + b"A\nb\n"),
    "byte order mark and CRLF": (BOM + b"a\r\nb\r\n", "@@\n a\n-b\n+B\n", BOM + b"a\r\nB\r\n"),
    "UTF-8": ("größe\nx\n".encode(), "@@\n größe\n-x\n+ß\n", "größe\nß\n".encode()),
    "latin-1": (b"caf\xe9\nx\n", "@@\n café\n-x\n+ü\n", b"caf\xe9\n\xfc\n"),
    "windows-1252": (b"\x93a\x94\nx\n", "@@\n-x\n+„y“\n", b"\x93a\x94\n\x84y\x93\n"),
    "UTF-16": ("\ufeffa\nb\n".encode("utf-16-le"), "@@\n-b\n+ü\n", "\ufeffa\nü\n".encode("utf-16-le")),
    "emoji": ("✅ a\nb\n".encode(), "@@\n-✅ a\n+❌ a\n", "❌ a\nb\n".encode()),
    # Likeness: found in spite of blanks, and only the lines that change are changed
    "trailing blanks in the file": (b"a  \nb\t\nc\n", "@@\n a\n-b\n+B\n c\n", b"a  \nB\nc\n"),
    "trailing blanks in the patch": (b"a\nb\n", "@@\n a  \n-b \n+B\n", b"a\nB\n"),
    "indented more in the file": (b"    a\n    b\n", "@@\n a\n-b\n+B\n", b"    a\n    B\n"),
    "indented less in the file": (b"a\n  b\n", "@@\n     a\n-      b\n+      B\n", b"a\n  B\n"),
    "tabs in the file, spaces in the patch": (
        b"\tif x:\n\t\ty\n", "@@\n     if x:\n-        y\n+        z\n+            w\n",
        b"\tif x:\n\t\tz\n\t\t\tw\n"),
    "spaces in the file, tabs in the patch": (
        b"    if x:\n        y\n", "@@\n \tif x:\n-\t\ty\n+\t\tz\n", b"    if x:\n        z\n"),
    "two spaces to the tab": (b"\ta\n\t\tb\n", "@@\n   a\n-    b\n+    c\n", b"\ta\n\t\tc\n"),
    "exact goes before alike": (b"  x\nx\n", "@@\n-x\n+y\n", b"  x\ny\n"),
    "typographic quotes in the file": (
        "say “hi”\nx\n".encode(), "@@\n say \"hi\"\n-x\n+y\n", "say “hi”\ny\n".encode()),
    "typographic apostrophe in the file": ("it’s\n".encode(), "@@\n-it's\n+it is\n", b"it is\n"),
    "dashes": ("a – b — c\nx\n".encode(), "@@\n a - b - c\n-x\n+y\n", "a – b — c\ny\n".encode()),
    "no-break space": ("a\u00a0b\nx\n".encode(), "@@\n a b\n-x\n+y\n", "a\u00a0b\ny\n".encode()),
    "typographic quotes in the patch": (b"a = 'b'\n", "@@\n-a = ‘b’\n+a = 'c'\n", b"a = 'c'\n"),
    "empty lines with blanks in the file": (b"a\n   \nb\n", "@@\n a\n \n-b\n+B\n", b"a\n   \nB\n"),
    "blanks in the empty lines of the patch": (b"a\n\nb\n", "@@\n a\n    \n-b\n+B\n", b"a\n\nB\n"),
    "no rule for the indentation, and nothing that needs one": (
        b" a\n   b\nc\n", "@@\n a\n-b\n+\n c\n", b" a\n\nc\n"),
    "alike at two places, below a header": (
        b"f\n  a\ng\n  a\n", "@@ g\n-    a\n+    b\n", b"f\n  a\ng\n  b\n"),
    "alike at two places, at the end": (b"  a\n  a\n", "@@\n-a\n+b\n*** End of File\n", b"  a\n  b\n"),
}  # fmt: skip


# name: (bytes before, hunks, parts of the message)
MISSES: dict[str, tuple[bytes, str, list[str]]] = {
    "not there": (b"a\nb\n", "@@\n-zzz zzz\n+y\n", ["f: hunk 1 of 1 (line 3 of the patch)", "Nothing in the file"]),
    "nearly there": (
        b"x\nprice = total(cart)\n", "@@\n-price = total(card)\n+p\n",
        ["Nearest: line 2", "      - price = total(card)\n    2 + price = total(cart)"]),
    "one line of three is not so": (
        b"one\ntwo\nthree\nfour\n", "@@\n two\n-three\n+3\n five\n",
        ["Nearest: lines 2-4", "    2   two\n    3   three\n      - five\n    4 + four"]),
    "the second hunk": (b"a\nb\nc\n", "@@\n-a\n+A\n@@\n-zz\n+B\n", ["hunk 2 of 2 (line 6 of the patch)"]),
    "hunks in another order": (b"a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A\n", ["hunk 2", "at line 1, above", "order"]),
    "above its header": (b"1\nf\n2\n", "@@ f\n-1\n+x\n", ["hunk 1", "at line 1, above", "order"]),
    "lines below a header that is above": (b"f\n1\n", "@@\n-1\n+x\n@@ f\n+y\n", ["hunk 2", "no line `f`"]),
    "no rule for the indentation": (
        b"if a:\n        x = 1\n        y = 2\n", "@@\n if a:\n-    x = 1\n+    x = 3\n     y = 2\n",
        ["hunk 1 of 1", "are at line 1, with indentation", "    2 + ········x = 1"]),
    "no rule for the indentation, at the margin": (
        b" a\n   b\n", "@@\n a\n-b\n+c\n", ["at line 1", "follows no rule"]),
    "no rule for the indentation, below a header": (
        b"f\n a\n   b\n", "@@ f\n a\n-b\n+c\n", ["at line 2", "follows no rule"]),
    "alike at two places": (
        b"if a:\n  x = 1\nif b:\n  x = 1\n", "@@\n-    x = 1\n+    x = 2\n",
        ["but for indentation they are there 2 times, first at line 2", "an @@ line", "    2 + ··x = 1"]),
    "alike at two places but for the ends": (
        b"a  \na  \n", "@@\n-a\n+b\n", ["but for blanks at the ends they are there 2 times, first at line 1"]),
    "alike at two places but for quotes": (
        "‘a’\n‘a’\n".encode(), "@@\n-'a'\n+b\n", ["but for Unicode punctuation they are there 2 times"]),
    "a header that begins no line": (
        b"class Cart:\n1\n", "@@ class Car\n-1\n+2\n", ["no line `class Car`, nor one", "    1 + class Cart:"]),
    "no such header": (b"def f():\n", "@@ def g():\n-x\n+y\n", ["no line `def g():`", "    1 + def f():"]),
    "the same place twice": (b"a\nb\n", "@@\n-a\n+A\n@@\n-a\n+B\n", ["hunk 2", "at line 1, above"]),
    "an empty file": (b"", "@@\n-a\n+b\n", ["Nothing in the file"]),
    "more lines than there are": (b"a\n", "@@\n a\n b\n-c\n+d\n", ["Nearest: line 1", "      - b"]),
    "upper and lower case": (b"Name\n", "@@\n-name\n+x\n", ["    1 + Name"]),
    "a blank inside a line": (b"f( x )\n", "@@\n-f(x)\n+g\n", ["    1 + f( x )"]),
    "nothing changes": (b"a\n", "@@\n a\n", ["f: the hunks change nothing"]),
    "the same in and out": (b"a\n", "@@\n-a\n+a\n", ["change nothing"]),
    "not in this encoding": (b"caf\xe9\n", "@@\n+→\n", ["U+2192", "latin-1"]),
    "half a surrogate pair": (b"a\n", "@@\n+\ud800\n", ["U+D800"]),
    "binary": (b"a\0b\n", "@@\n-a\n+b\n", ["f is a binary file, not text"]),
    "a picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 9, "@@\n-a\n+b\n", ["f is a PNG image, not text"]),
}  # fmt: skip

BEGIN, END = "*** Begin Patch\n", "*** End Patch"

# name: (patch, parts of the message)
UNREADABLE: dict[str, tuple[str, list[str]]] = {
    "nothing": ("", ["the first line is ''", "*** Begin Patch"]),
    "prose": ("please change a to b", ["the first line is 'please change a to b'"]),
    "a unified diff": ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", ["'--- a/f'", "*** Update File: PATH"]),
    "no end": (BEGIN + "*** Add File: x\n+a\n", ["the last line is '+a'", "cut off"]),
    "no begin": ("*** Add File: x\n+a\n" + END, ["the first line is '*** Add File: x'"]),
    "only the begin": ("*** Begin Patch", ["the last line"]),
    "no section": (BEGIN + END, ["changes no file"]),
    "only empty lines": (BEGIN + "\n\n" + END, ["changes no file"]),
    "an unknown section": (BEGIN + "*** Rename File: f\n" + END, ["line 2 of the patch", "begins no section"]),
    "no file name": (BEGIN + "*** Add File:\n+a\n" + END, ["line 2 of the patch", "names no file"]),
    "no sign in a new file": (BEGIN + "*** Add File: x\n+a\nb\n" + END, ["line 4 of the patch", "begins with +"]),
    "no sign in a hunk": (BEGIN + "*** Update File: f\n@@\n-a\nb\n" + END, ["line 5 of the patch", "'b'"]),
    "no hunk": (BEGIN + "*** Update File: f\n" + END, ["line 2 of the patch", "has no hunk"]),
    "an empty hunk": (BEGIN + "*** Update File: f\n@@\n" + END, ["begins with a space, - or +"]),
    "an empty hunk before another section": (
        BEGIN + "*** Update File: f\n@@ x\n*** Delete File: g\n" + END, ["line 4 of the patch"]),
    "lines after a deletion": (BEGIN + "*** Delete File: f\n-a\n" + END, ["line 3", "begins no section"]),
    "a move of nothing": (BEGIN + "*** Move to: g\n" + END, ["line 2", "begins no section"]),
    "a move to nowhere": (BEGIN + "*** Update File: f\n*** Move to:\n" + END, ["has no hunk"]),
}  # fmt: skip

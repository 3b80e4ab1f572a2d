"""A small corpus of our own: what a coding agent's context is made of. For tests and for benches/tokens.py."""

import base64
import hashlib
import json
import random
from pathlib import Path

ROOT = Path(__file__).parents[2]
RANDOM = random.Random(7)

CORPUS = {
    "code": "".join(p.read_text() for p in sorted((ROOT / "agentsh" / "context").glob("*.py"))),
    "markdown": (ROOT / "docs" / "log-format.md").read_text(),
    "a log": (ROOT / "tests" / "golden" / "format1-sample.jsonl").read_text(errors="replace"),
    "json": json.dumps([{"id": n, "name": f"item {n}", "ok": n % 2 == 0, "at": n * 1.5} for n in range(300)]),
    "hashes": "\n".join(hashlib.sha256(str(n).encode()).hexdigest() + f"  file{n}.txt" for n in range(100)),
    "numbers": "\n".join(",".join(f"{RANDOM.random() * 1000:.4f}" for _ in range(8)) for _ in range(100)),
    "base64": base64.b64encode(RANDOM.randbytes(9_000)).decode(),
    "listing": "\n".join(f"-rw-r--r-- 1 root root {n * 977} Nov 30 03:{n % 60:02} module_{n}.py" for n in range(200)),
    "chinese": "人工智能是计算机科学的一个分支，它企图了解智能的实质。我们修正了三个错误，请再运行一次测试。" * 9,
    "japanese": "この関数は、与えられたリストの要素を昇順に並べ替えて返します。テストをもう一度実行してください。"
    * 9,
    "korean": "이 함수는 주어진 목록의 요소를 오름차순으로 정렬하여 반환합니다. 테스트를 다시 실행해 주세요." * 9,
    "russian": "Эта функция сортирует элементы списка и возвращает новый. Запустите тесты ещё раз." * 9,
    "arabic": "هٰذِهِ الدَّالَّةُ تُرَتِّبُ عَنَاصِرَ القَائِمَةِ وَتُعِيدُ قَائِمَةً جَدِيدَةً. " * 9,
    "amharic": "ይህ ተግባር የዝርዝሩን አባላት በቅደም ተከተል ያስቀምጣል። " * 9,
    "polish": "Zażółć gęślą jaźń; ta funkcja sortuje elementy listy i zwraca nową listę. " * 9,
    "letters": " ".join("".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=n % 9 + 4)) for n in range(300)),
    "unbroken letters": "".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=2_000)),
    "emoji": "".join(chr(RANDOM.randint(0x1F300, 0x1FAFF)) for _ in range(500)),
    "mojibake": "".join(chr(RANDOM.randint(0x80, 0x24F)) for _ in range(1_000)),
    "any characters": "".join(
        chr(RANDOM.choice((RANDOM.randint(0x80, 0xD7FF), RANDOM.randint(0xE000, 0xFFFD)))) for _ in range(2_000)
    ),
    "pictures": "🎉🚀✅❌🔥 done 👍🏽 " * 60,
}

import unittest

from wordcount import count


class TestCount(unittest.TestCase):
    def test_two_words(self) -> None:
        self.assertEqual(count("hello world"), 2)

    def test_more_white_space(self) -> None:
        self.assertEqual(count("  hello   world "), 2)


if __name__ == "__main__":
    unittest.main()

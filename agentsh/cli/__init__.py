"""The command line: signatures and help; the bodies import lazily."""

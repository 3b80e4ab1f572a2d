"""Names inside a git directory that several modules must agree on."""

PACKS = ".git/objects/pack/"
ALTERNATES = ".git/objects/info/alternates"
"""Where a clone says in which other repository its history lies."""
KEEP_MARK = b"agentsh: history of the origin"
"""Content of the `.keep` of packs that came from the origin: git never repacks them, and snapshots pass over them."""
BRANCHES = "agentsh/"
"""A session works on the branch `agentsh/ID`."""

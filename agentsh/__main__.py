"""`python -m agentsh` is the `agentsh` command."""

from agentsh.cli.entry import main

main()

"""What a model can do in a workspace: one tool, one file."""

"""What users run before and after a tool."""

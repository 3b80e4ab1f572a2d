"""The composition root: settings, paths, the wiring tables, build."""

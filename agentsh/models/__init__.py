"""Ways to reach a model: one provider, one file."""

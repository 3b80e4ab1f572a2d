"""Pure: fold, messages, budget, validation and repairs; no clock, no disk, no await."""

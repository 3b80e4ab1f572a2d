"""The only code that touches a working directory: provision, jail, process."""

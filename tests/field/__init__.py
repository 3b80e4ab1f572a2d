"""What people reported about tools of this kind, row by row: the field reports beside the design."""

"""Other blocks and grids, and how much work a thread takes."""

"""fewer-blocks: points folded in registers before a block's own fold."""

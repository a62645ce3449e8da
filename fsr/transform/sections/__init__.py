"""What one thread of a block does alone, dealt out to all."""

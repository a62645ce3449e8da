"""What a candidate may say: refused before a compiler sees it."""

"""Ask and tell: proposals, archive, policy. Never imports evaluation."""

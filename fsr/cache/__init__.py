"""Winners and failures, keyed by hardware."""

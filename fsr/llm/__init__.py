"""Language models propose candidates: providers, roles, prompts, the ledger; nothing of a run waits for them."""

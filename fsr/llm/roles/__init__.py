"""Roles of a model: each a pure, versioned pair of functions, evidence to prompt and answer to what it proposes."""

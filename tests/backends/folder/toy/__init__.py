"""A backend as somebody would add it: one folder, no other file touched."""

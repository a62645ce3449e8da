"""A kernel written anew from what it computes, as plainly as can be: what other actions recognise."""

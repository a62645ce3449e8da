"""Finding out what a plan computes, by watching it run on the CPU at a few small sizes."""

"""What build systems use: the compiler launcher and its queue, manifests, sources for run-time compilation."""

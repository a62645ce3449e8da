"""What devices and compilers offer, and those there are: a folder a backend."""

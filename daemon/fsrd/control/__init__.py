"""The other end: how the command line reaches the service, starts and installs it."""

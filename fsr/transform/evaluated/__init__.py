"""What is known when a kernel is compiled for one length of its messages, worked out in its text."""

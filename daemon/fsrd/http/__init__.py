"""The way in: an HTTP API on a Unix socket and on the loopback address, and the web page."""

"""Device functions written out where a kernel calls them."""

"""The web page and the report of a run, bundled from daemon/page by npm."""

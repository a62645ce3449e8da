"""What is to be refined: a queue in SQLite that a kill, a reboot and a wrong clock leave whole."""

"""When the service may use the machine: nobody else needs it, and its owner allows it."""

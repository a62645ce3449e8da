"""From features to a time and what binds it. Predicted times are always labelled so."""

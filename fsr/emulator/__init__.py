"""The C++ behind the host device."""
